// A split virtqueue, the device's end: Virtual I/O Device (VIRTIO) Version 1.2, section 2.7, with
// indirect descriptors (2.7.5.3) and, when negotiated, used_event and avail_event (2.7.10).
// Every index, address and length comes from the guest and may change at any time: each is loaded
// once and checked; a chain is at most as long as the queue. A queue whose driver broke a rule is
// broken(): it gives nothing more, and the device asks for a reset.
// The rings are shared with vCPUs that run: indexes are loaded with acquire and stored with
// release, and there is a full fence between publishing and reading the other side's flag.
// Threads: one at a time; the device locks. Used by the virtio devices.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "vmm/guest_memory.h"

namespace ringside::vmm::kvm {

/// A request: pieces of guest memory, in place. Their bytes may change at any time.
struct DescriptorChain {
  using Pieces = std::vector<std::span<std::byte>>;
  std::uint16_t head = 0;
  Pieces readable;  // by the device
  Pieces writable;
  std::size_t readable_size = 0, writable_size = 0;  // at most 4 GiB - 1 together
};

/// Copies from `offset` bytes into `pieces` on; returns how many bytes, at most out.size().
std::size_t copy_from(const DescriptorChain::Pieces& pieces, std::size_t offset,
                      std::span<std::byte> out);
/// Copies `bytes` to `offset` bytes into `pieces`; returns how many fitted.
std::size_t copy_to(const DescriptorChain::Pieces& pieces, std::size_t offset,
                    std::span<const std::byte> bytes);
/// The part [offset, offset + size) of `pieces`; all of it must exist.
DescriptorChain::Pieces slice(const DescriptorChain::Pieces& pieces, std::size_t offset,
                              std::size_t size);

class Virtqueue {
 public:
  struct Rings {
    std::uint16_t size = 0;  // entries: a power of two
    GuestPhys descriptors, driver, device;
  };

  /// Empty when the size is no power of two, or a ring is misaligned or not all in RAM.
  static std::optional<Virtqueue> create(GuestMemory& memory, const Rings& rings, bool event_index);

  std::uint16_t size() const { return size_; }
  /// Whether the driver broke a rule. Then pop() gives nothing more; only a new queue does.
  bool broken() const { return !broken_rule_.empty(); }
  /// The broken rule, in words that follow "the driver gave it"; empty while none is.
  std::string_view broken_rule() const { return broken_rule_; }

  /// Takes the next chain; false when there is none.
  bool pop(DescriptorChain& chain);
  /// Gives the chain that begins at `head` back. `written`: bytes, from the start of its writable
  /// part.
  void push(std::uint16_t head, std::uint32_t written);
  /// Whether the driver wants an interrupt for the chains that were pushed since the last call.
  bool interrupt_wanted();

  /// Tells the driver not to notify us; we look by ourselves.
  void disable_notifications();
  /// Tells the driver to notify us again. True when chains came meanwhile, without a notification.
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
