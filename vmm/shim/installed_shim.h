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
#include "vmm/shim/copied_looks.h"
#include "vmm/shim/fault_list.h"
#include "vmm/shim/shim.h"
#include "vmm/shim/shim_layout.h"
#include "vmm/shim/shim_mapping.h"
#include "vmm/shim/shim_presence.h"
#include "vmm/shim/shim_region.h"
#include "vmm/shim/shim_slots.h"
#include "vmm/shim/shim_table.h"

namespace ringside::vmm {

class InstalledShim final : public Shim {
 public:
  /// The region is laid out as `layout` says, with the image and its header in place and everything
  /// from the table on zero but for `occupied`, by address; and mapped in the guest at `base`.
  /// Without a mapping it cannot be removed.
  InstalledShim(GuestMemory& memory, const ShimLayout& layout, GuestVirt base, unsigned vcpus,
                SavedGate gate, std::optional<ShimMapping> mapping = std::nullopt,
                std::vector<OccupiedSlots> occupied = {});

  Result<GuestVirt> allocate_slot(std::size_t size) override { return slots_.allocate(size); }
  std::uint64_t slot_room() const override { return slots_.room(); }
  Result<void> write_slot(GuestVirt slot, std::span<const std::byte> code) override {
    return slots_.write(slot, code);
  }
  Result<void> add_entry(GuestVirt address, GuestVirt slot) override;
  Result<void> enable_entries(std::span<const GuestVirt> addresses) override {
    return table_.enable(addresses);
  }
  void disable_entry(GuestVirt address) override { table_.disable(address); }
  void note_arming() override;
  std::optional<GuestVirt> jump_entry() const override {
    return base_.wrapping_add(SHIM_JUMP_ENTRY);
  }
  std::vector<std::byte> kexec_notice(GuestVirt slot) override;
  Result<std::vector<std::byte>> fault_search(GuestVirt slot) override;
  Result<void> add_fault(GuestVirt slot, GuestVirt place) override {
    return faults_.add(slot, place);
  }
  ShimState state() const override { return presence_.state(); }
  Result<void> check_mapped(PausedMachine& machine) const override {
    return presence_.check_mapped(machine);
  }
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
  std::optional<GuestVirt> jumped_from(std::uint64_t offset) const;
  bool is_under_way(unsigned mailbox, std::uint64_t head) const;
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
  unsigned serve_looked_at(TrapSink& sink, const Pass& pass, CopiedLooks& looks);
  bool may_have_timed_out() const;
  void serve(unsigned mailbox, std::uint64_t head, TrapSink& sink);
  void serve_copy(unsigned mailbox, const MailboxCopy& box, TrapSink& sink, LookTime looked);
  bool write_answer(std::uint64_t at, const MailboxCopy& box, std::uint64_t& answered,
                    std::uint64_t claim, LookTime looked);
  bool wants_answer(unsigned mailbox, std::uint64_t head) const;
  void look_up_to(unsigned limit);
  ShimCounters sum_counters() const;
  bool is_fired_late(unsigned mailbox) const;

  const ShimLayout layout_;
  mutable ShimRegion region_;
  GuestVirt base_;
  ShimPresence presence_;
  ShimSlots slots_;
  ShimTable table_;
  FaultList faults_;
  std::optional<ShimMapping> mapping_;
  std::atomic<std::uint64_t> heartbeat_{0};
  std::atomic<std::uint64_t> doorbell_{0};
  std::atomic<std::uint64_t> rejected_{0};
  std::atomic<std::uint64_t> fired_late_{0};  // served after the guest had given them up
  std::uint64_t armings_ = 0;
  // By mailbox: the claim that was last taken to be served, and what `answered` was last seen or
  // set to. Two threads that find the same claim serve it once.
  std::array<std::atomic<std::uint64_t>, SHIM_MAILBOXES> taken_{}, answered_{};
  std::optional<GuestVirt> kexec_slot_, kexec_address_;
  mutable std::mutex counters_lock_;
  mutable ShimCounters last_counters_;
  std::atomic<unsigned> scan_limit_;                 // mailboxes that polling looks at every time
  std::vector<std::unique_ptr<CopiedLooks>> looks_;  // by index of the share; none where mapped
  std::atomic<LookTime> beat_{};                     // when the heartbeat was last written
  std::array<std::atomic<unsigned>, SHIM_MAILBOXES> polls_{};  // by index of the share
};

}  // namespace ringside::vmm
