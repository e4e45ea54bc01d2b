// A split virtqueue, the device's end: Virtual I/O Device (VIRTIO) Version 1.2, section 2.7, with
// indirect descriptors (2.7.5.3) and, when negotiated, used_event and avail_event (2.7.10).
// Every index, address and length is the guest's, and may change under us: each is loaded once and
// checked; a chain is at most the queue's size long. A queue whose driver broke a rule is broken():
// it gives nothing more, and the device asks for a reset.
// The rings are shared with vCPUs that run: indexes are loaded with acquire and stored with
// release, and a full fence lies between what one side publishes and the flag of the other it then
// reads. Threads: one at a time; the device locks. Used by the virtio devices. Fire context: no.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "vmm/guest_memory.h"

namespace ringside::vmm::kvm {

/// A request: pieces of guest memory, in place. Their bytes may change while one looks at them.
struct DescriptorChain {
  using Pieces = std::vector<std::span<std::byte>>;
  std::uint16_t head = 0;
  Pieces readable;  // by the device
  Pieces writable;
  std::size_t readable_size = 0, writable_size = 0;  // at most 4 GiB - 1 together
};

/// Copies what lies `offset` bytes into `pieces`; how many bytes there were, at most out.size().
std::size_t copy_from(const DescriptorChain::Pieces& pieces, std::size_t offset,
                      std::span<std::byte> out);
/// Copies `bytes` to `offset` bytes into `pieces`; how many fitted.
std::size_t copy_to(const DescriptorChain::Pieces& pieces, std::size_t offset,
                    std::span<const std::byte> bytes);
/// `size` bytes of `pieces` from `offset` on, all of which exist.
DescriptorChain::Pieces slice(const DescriptorChain::Pieces& pieces, std::size_t offset,
                              std::size_t size);

class Virtqueue {
 public:
  struct Place {
    std::uint16_t size = 0;  // entries: a power of two
    GuestPhys descriptors, driver, device;
  };

  /// Empty when the size is no power of two, or a ring is misaligned or not all in RAM.
  static std::optional<Virtqueue> create(GuestMemory& memory, const Place& place, bool event_index);

  std::uint16_t size() const { return size_; }
  /// The driver broke the rules; until the queue is made anew there are no more chains.
  bool broken() const { return !broken_rule_.empty(); }
  /// What was wrong, in words that follow "the driver gave it"; empty while nothing is.
  std::string_view broken_rule() const { return broken_rule_; }

  /// Takes the next chain; false when there is none.
  bool pop(DescriptorChain& chain);
  /// Gives a chain back, with as many bytes written from the start of its writable part.
  void push(std::uint16_t head, std::uint32_t written);
  /// Whether the driver wants an interrupt for what was pushed since the last call.
  bool interrupt_wanted();

  /// The driver need not notify us: we look by ourselves.
  void disable_notifications();
  /// The driver notifies us again; true when chains came meanwhile, of which nobody will tell.
  bool enable_notifications();

 private:
  struct Descriptor;
  Virtqueue() = default;

  std::optional<Descriptor> descriptor(std::uint16_t index, std::span<const std::byte> table) const;
  std::optional<std::span<const std::byte>> inner_table(const Descriptor& descriptor);
  bool collect(std::uint16_t index, DescriptorChain& chain);
  bool add_piece(const Descriptor& descriptor, DescriptorChain& chain);
  bool breaks(std::string_view rule);

  GuestMemory* memory_ = nullptr;
  std::uint16_t size_ = 0;
  bool event_index_ = false;
  std::string_view broken_rule_;      // a literal
  std::span<const std::byte> table_;  // size_ descriptors of 16 bytes
  std::span<std::byte> available_;    // flags, index, size_ heads, used_event: 2 bytes each
  std::span<std::byte> used_;         // flags, index, size_ of {head, length}, avail_event
  std::uint16_t next_available_ = 0, next_used_ = 0;
  std::uint16_t signalled_ = 0;  // next_used_ at the last interrupt_wanted
};

}  // namespace ringside::vmm::kvm
