// The host's end of an installed shim, over the shared region: polled, or rung for
// (vmm/shim/shim.h). Made by shim_install.cc; everybody else sees vmm/shim/shim.h. The host keeps
// its own copy of the lookup table and never believes the shared one. Fire context and threads: as
// vmm/shim/shim.h says.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "guest-shim/mailbox_abi.h"
#include "vmm/base/brief_lock.h"
#include "vmm/shim/copied_looks.h"
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
  /// By copies a look whether the shim is there takes as long as all else of a firing, and each
  /// heartbeat takes one. So a trap does without one for so long. All that is written for it is the
  /// answer: over our last one, in a mailbox that has just been copied with a later claim for a
  /// place of ours. Memory that has become somebody else's has no such mailbox, unless that is
  /// still as it was; and a kernel that starts another one (kexec) tells us before.
  static constexpr auto kSeenFor = std::chrono::milliseconds(2);

  /// The region is laid out as `layout` says, with the image and its header in place and everything
  /// from the table on zero but for `occupied`, by address; and mapped in the guest at `base`.
  /// Without a mapping it cannot be removed.
  InstalledShim(GuestMemory& memory, const ShimLayout& layout, GuestVirt base, unsigned vcpus,
                SavedGate gate, std::optional<ShimMapping> mapping = std::nullopt,
                std::vector<OccupiedSlots> occupied = {});

  Result<GuestVirt> allocate_slot(std::size_t size) override;
  std::uint64_t slot_room() const override { return layout_.slots_bytes - slot_bytes_; }
  Result<void> write_slot(GuestVirt slot, std::span<const std::byte> code) override;
  Result<void> add_entry(GuestVirt address, GuestVirt slot) override;
  Result<void> enable_entries(std::span<const GuestVirt> addresses) override;
  void disable_entry(GuestVirt address) override;
  void note_arming() override;
  std::optional<GuestVirt> jump_entry() const override {
    return base_.wrapping_add(SHIM_JUMP_ENTRY);
  }
  std::vector<std::byte> kexec_notice(GuestVirt slot) override;
  Result<std::vector<std::byte>> fault_search(GuestVirt slot) override;
  Result<void> add_fault(GuestVirt slot, GuestVirt place) override;
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
  std::optional<GuestVirt> displaced_from(GuestVirt pc) const override;

 private:
  void note_slot(std::uint32_t offset);
  Result<void> change_slot(std::uint32_t bucket, GuestVirt address, std::uint64_t offset);
  bool enable_in_place(std::span<const std::uint32_t> buckets);
  bool enable_by_copies(std::span<const std::uint32_t> buckets);
  std::optional<GuestVirt> jumped_from(std::uint64_t offset) const;
  bool is_under_way(unsigned mailbox, std::uint64_t head) const;
  using HeaderWords = std::array<std::uint64_t, SHIM_HEADER_SIZE / 8>;
  std::uint64_t control(unsigned field) const { return layout_.data + field; }
  std::uint32_t first_bucket(GuestVirt address) const;
  std::optional<std::uint32_t> bucket_of(GuestVirt address) const;
  bool knows(GuestVirt address) const { return bucket_of(address).has_value(); }
  /// The mailboxes of one pass.
  struct Pass {
    PollShare share;
    unsigned usual = 0, limit = 0;  // those that are in use, those to look at
  };
  using LookTime = CopiedLooks::Clock::time_point;
  template <typename Found>
  void for_each_raised(const Pass& pass, Found found);
  unsigned poll_heads(TrapSink& sink, const Pass& pass);
  unsigned poll_ahead(TrapSink& sink, const Pass& pass, CopiedLooks& looks);
  bool is_any_raised(const Pass& pass);
  bool look_ahead(CopiedLooks& looks, unsigned mailboxes);
  unsigned serve_looked_at(TrapSink& sink, const Pass& pass, CopiedLooks& looks);
  bool may_have_timed_out() const;
  void serve(unsigned mailbox, std::uint64_t head, TrapSink& sink);
  void serve_copy(unsigned mailbox, const MailboxCopy& box, TrapSink& sink, LookTime looked);
  bool write_answer(std::uint64_t at, const MailboxCopy& box, std::uint64_t& answered,
                    std::uint64_t claim, LookTime looked);
  bool wants_answer(unsigned mailbox, std::uint64_t head) const;
  bool was_just_seen() const;
  void look_up_to(unsigned limit);
  bool has_header() const;
  void give_up_ownership();
  Result<std::uint64_t> allocate_words(std::size_t words);
  Result<std::uint64_t> first_fault();
  bool looks_in_place() const { return region_.is_mapped() && !gate_mapping_.empty(); }
  ShimState look() const;
  /// The places that look() looks at, to be read by one call.
  struct CopiedLook {
    std::array<std::uint64_t, (SHIM_CONTROL_LEFT + 8) / 8> words;
    HeaderWords header;
    std::array<std::byte, sizeof SavedGate().ours> gate;

    std::array<GuestMemory::Part, 3> parts(const ShimLayout& layout, GuestPhys gate_at) {
      return {{{layout.place.wrapping_add(layout.data), std::as_writable_bytes(std::span(words))},
               {layout.place, std::as_writable_bytes(std::span(header))},
               {gate_at, gate}}};
    }
  };
  ShimState look_by_copies() const;
  /// Notes when it was there.
  ShimState verdict(const CopiedLook& look, LookTime begun) const;
  bool copy_mailbox(unsigned mailbox, std::uint64_t head, MailboxCopy& box) const;
  ShimCounters sum_counters() const;
  bool is_fired_late(unsigned mailbox) const;

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
  std::uint64_t place_of(std::uint32_t bucket) const {
    return layout_.table + sizeof(std::uint64_t) * bucket;
  }
  // The words that the shared table should hold where they are enabled. Threads that serve traps
  // look, too.
  std::vector<std::atomic<std::uint64_t>> table_;
  std::size_t entries_ = 0;
  const std::vector<OccupiedSlots> occupied_;
  std::size_t slot_bytes_ = 0;  // allocated so far, up to here
  mutable BriefLock slots_lock_;
  std::vector<std::uint32_t> slots_;  // where each begins, from the header on; in this order
  std::atomic<std::uint64_t> heartbeat_{0};
  std::atomic<std::uint64_t> doorbell_{0};
  std::atomic<std::uint64_t> rejected_{0};
  std::atomic<std::uint64_t> fired_late_{0};  // served after the guest had given them up
  std::uint64_t armings_ = 0;
  // By mailbox: the claim that was last taken to be served, and what `answered` was last seen or
  // set to. Two threads that find the same claim serve it once.
  std::array<std::atomic<std::uint64_t>, SHIM_MAILBOXES> taken_{}, answered_{};
  std::optional<GuestVirt> kexec_slot_, kexec_address_;
  std::optional<std::uint64_t>
      first_fault_;               // where the word lies that leads to the list of faults
  std::uint64_t last_fault_ = 0;  // what that word is: an address in the guest
  mutable std::mutex counters_lock_;
  mutable ShimCounters last_counters_;
  std::atomic<unsigned> scan_limit_;                 // mailboxes that polling looks at every time
  std::vector<std::unique_ptr<CopiedLooks>> looks_;  // by index of the share; none where mapped
  // When the heartbeat was last written, and when a look by copies last saw the shim there.
  mutable std::atomic<LookTime> beat_{}, seen_{};
  std::array<std::atomic<unsigned>, SHIM_MAILBOXES> polls_{};  // by index of the share
};

}  // namespace ringside::vmm
