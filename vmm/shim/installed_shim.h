// The host's end of an installed shim, over the shared region: polled, or rung for
// (vmm/shim/shim.h). Made by shim_install.cc; everybody else sees vmm/shim/shim.h. The host keeps
// its own copy of the lookup table and never believes the shared one. Fire context and threads: as
// vmm/shim/shim.h says.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "guest-shim/mailbox_abi.h"
#include "vmm/shim/shim.h"
#include "vmm/shim/shim_layout.h"
#include "vmm/shim/shim_mapping.h"
#include "vmm/shim/shim_region.h"

namespace ringside::vmm {

/// The gate that led to the kernel's own #BP handler, to be put back, and the one that replaced it.
struct SavedGate {
  GuestPhys at;
  std::array<std::byte, 16> bytes{};
  std::array<std::byte, 16> ours{};
};

/// A part of the slots that somebody was inside of when the shim was taken over: offsets from the
/// first slot.
struct OccupiedSlots {
  std::uint64_t begin = 0, end = 0;
};

class InstalledShim final : public Shim {
 public:
  /// The region is laid out as `layout` says, with the image and its header in place and everything
  /// from the table on zero but for `occupied`, by address; and mapped in the guest at `base`.
  /// Without a mapping it cannot be removed.
  InstalledShim(GuestMemory& memory, const ShimLayout& layout, GuestVirt base, unsigned vcpus,
                SavedGate gate, std::optional<ShimMapping> mapping = std::nullopt,
                std::vector<OccupiedSlots> occupied = {});

  Result<GuestVirt> allocate_slot(std::size_t size) override;
  Result<void> write_slot(GuestVirt slot, std::span<const std::byte> code) override;
  Result<void> add_entry(GuestVirt address, GuestVirt slot) override;
  void remove_entry(GuestVirt address) override;
  std::vector<std::byte> farewell(GuestVirt slot) override;
  ShimState state() const override;
  Result<void> check_mapped(PausedMachine& machine) const override;
  void activate() override;
  void deactivate() override;
  Result<void> retire(PausedMachine& machine) override;
  Result<void> remove(PausedMachine& machine) override;
  ShimPlace place() const override { return layout_.place_at(base_); }
  unsigned poll_share(TrapSink& sink, PollShare share) override;
  void set_doorbell(std::uint16_t port) override;
  void answer(std::uint32_t mailbox, TrapSink& sink) override;
  void heartbeat() override;
  bool quiescent() const override;
  TrapsUnderWay under_way() const override;
  bool have_answers(const TrapsUnderWay& traps) const override;
  ShimCounters counters() const override;
  bool contains(GuestVirt pc) const override;
  std::optional<Registers> waiting(GuestVirt percpu_base) const override;

 private:
  Result<void> put_back(std::uint32_t bucket, GuestVirt address, std::uint64_t offset);
  bool is_under_way(unsigned mailbox, std::uint64_t head) const;
  using HeaderWords = std::array<std::uint64_t, SHIM_HEADER_SIZE / 8>;
  std::uint64_t control(unsigned field) const { return layout_.data + field; }
  std::uint32_t first_bucket(GuestVirt address) const;
  std::optional<std::uint32_t> bucket_of(GuestVirt address) const;
  bool knows(GuestVirt address) const { return bucket_of(address).has_value(); }
  void serve(unsigned mailbox, std::uint64_t head, TrapSink& sink);
  bool wants_answer(unsigned mailbox, std::uint64_t head) const;
  void look_up_to(unsigned limit);
  bool has_header() const;
  void give_up_ownership();
  ShimState look() const;
  struct CopiedLook;
  ShimState look_by_copies() const;
  ShimState verdict(const CopiedLook& look) const;
  bool copy_mailbox(unsigned mailbox, std::uint64_t head, MailboxCopy& box) const;
  ShimCounters sum_counters() const;

  const ShimLayout layout_;
  mutable ShimRegion region_;
  GuestVirt base_;
  SavedGate gate_;
  std::optional<ShimMapping> mapping_;
  std::span<const std::byte> gate_mapping_;  // changes at any time; none by copies
  HeaderWords header_{};
  mutable std::atomic<ShimState> state_{ShimState::There};
  std::uint64_t entry(std::uint32_t bucket) const {
    return table_[bucket].load(std::memory_order_acquire);
  }
  // The words that the shared table should hold. Threads that serve traps look, too.
  std::vector<std::atomic<std::uint64_t>> table_;
  std::size_t entries_ = 0;
  const std::vector<OccupiedSlots> occupied_;
  std::size_t slot_bytes_ = 0;  // allocated so far, up to here
  std::atomic<std::uint64_t> heartbeat_{0};
  std::atomic<std::uint64_t> doorbell_{0};
  std::atomic<std::uint64_t> rejected_{0};
  // By mailbox: the claim that was last taken to be served, and what `answered` was last seen or
  // set to. Two threads that find the same claim serve it once.
  std::array<std::atomic<std::uint64_t>, SHIM_MAILBOXES> taken_{}, answered_{};
  std::optional<GuestVirt> farewell_slot_, farewell_address_;
  mutable std::mutex counters_lock_;
  mutable ShimCounters last_counters_;
  std::atomic<unsigned> scan_limit_;  // mailboxes that polling looks at every time
  std::array<std::atomic<unsigned>, SHIM_MAILBOXES> polls_{};  // by index of the share
};

}  // namespace ringside::vmm
