// The host's end of the shim, which lies in a guest's memory: installs it, and joins the two halves
// by which it is used, the trap table (trap_table.h) and the mailboxes (mailboxes.h). Layout:
// guest-shim/mailbox_abi.h. Its parts each have their own state; a function that needs one part
// only is that part's. Everything read from the region is hostile: copied once, the copy validated,
// the copy used.
//
// A guest can start another kernel without a reset (kexec). The region is then that kernel's RAM.
// So before each write the host checks whether the region is still the shim's, and never writes
// again once it is not (state()). A word that the guest may reach is written only if it has the
// value that the host wrote last (ShimRegion). A guest that starts another kernel passes a
// trap point (kexec_notice()); the answer to that trap is the last write.
//
// Fire context and threads: as the two halves say; install(), retire() and remove() no, on the
// session's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "guest-shim/mailbox_abi.h"
#include "vmm/arch/arch.h"
#include "vmm/base/address.h"
#include "vmm/base/result.h"
#include "vmm/machine.h"
#include "vmm/page_walk.h"
#include "vmm/shim/control_words.h"
#include "vmm/shim/mailbox_claims.h"
#include "vmm/shim/mailbox_poller.h"
#include "vmm/shim/mailboxes.h"
#include "vmm/shim/record_rings.h"
#include "vmm/shim/shim_layout.h"
#include "vmm/shim/shim_mapping.h"
#include "vmm/shim/shim_presence.h"
#include "vmm/shim/shim_region.h"
#include "vmm/shim/shim_slots.h"
#include "vmm/shim/shim_table.h"
#include "vmm/shim/slot_code.h"
#include "vmm/shim/trap_server.h"
#include "vmm/shim/trap_table.h"
#include "vmm/shim/user_points.h"

namespace ringside::vmm {

class Shim final : public TrapTable, public Mailboxes {
 public:
  /// Puts the shim into `place`, as shim_layout.h says, and points IDT[3] at it. The machine's
  /// memory may be mapped here or not. Refuses (Unsupported), with the way out, a guest with FRED,
  /// with a gate that uses an IST, with no free PMDs, with user page tables that are not Linux's,
  /// or one that carries a shim already. Not active yet. If the rings that are
  /// wanted do not fit, it has rings for as many CPUs as there are vCPUs now, or none.
  static Result<std::unique_ptr<Shim>> install(PausedMachine& machine, GuestMemory::Extent place,
                                               const ShimKernelFacts& facts, RingWants rings = {});
  /// The region has the layout `layout`, with the image and its header in place, and is mapped in
  /// the guest at `base`. Everything from the table on is zero, except the slots `occupied`, by
  /// address. Without a mapping it cannot be removed.
  Shim(GuestMemory& memory, const ShimLayout& layout, GuestVirt base, unsigned vcpus,
       SavedGate gate, std::optional<ShimMapping> mapping = std::nullopt,
       std::vector<OccupiedSlots> occupied = {},
       ShimPresence::GuestRuns runs = ShimPresence::GuestRuns::OnProcessor);

  Result<GuestVirt> allocate_slot(std::size_t size) override { return slots_.allocate(size); }
  std::uint64_t slot_room() const override { return slots_.room(); }
  bool shares_slots() const override { return layout_.shares_slots(); }
  Result<void> write_slot(GuestVirt slot, std::span<const std::byte> code,
                          SlotHeader header = {}) override {
    return slots_.write(slot, code, header);
  }
  Result<void> add_entry(GuestVirt address, GuestVirt slot) override;
  std::uint32_t ring_count() const override { return layout_.ring_count; }
  Result<void> record_at(std::span<const GuestVirt> addresses, std::uint8_t list = 0) override;
  /// The lists for record_at(), from number 1 on; `uses_default`: number 0 is used, too. Before it.
  /// Without `facts`, which tell how memory is looked up, no list may copy memory. Limit when a
  /// ring would have room for too few records.
  Result<void> set_fetch_lists(const std::optional<FetchFacts>& facts, std::vector<FetchList> lists,
                               bool uses_default = true);
  /// After set_fetch_lists(): lists that wait only for some values wait for this one, too
  /// (FetchList::add_waited_for()). Beside the guest. Limit: one of them has no room.
  Result<void> add_waited_for(GuestVirt value);
  Result<void> enable_entries(std::span<const GuestVirt> addresses) override {
    return table_.enable(addresses);
  }
  void disable_entry(GuestVirt address) override { table_.disable(address); }
  void note_arming() override { control_.note_arming(); }
  std::optional<GuestVirt> jump_entry() const override {
    return base_.wrapping_add(SHIM_JUMP_ENTRY);
  }
  Result<std::vector<std::byte>> kexec_notice(GuestVirt slot) override;
  Result<std::vector<std::byte>> fault_search(GuestVirt slot) override;
  Result<void> add_fault(GuestVirt slot, GuestVirt place) override {
    return faults_.add(slot, place);
  }
  Result<void> serve_processes(const FetchFacts& facts) override;
  Result<GuestVirt> add_user_point(const UserTrapPoint& point) override;
  Result<GuestVirt> reserve_user_point() override;
  Result<void> describe_user_point(GuestVirt name, const UserTrapPoint& point) override;
  Result<void> note_semaphore(GuestVirt name, std::uint64_t semaphore) override;
  Result<void> enable_user_points(std::span<const GuestVirt> names) override;
  void forget_user_point(GuestVirt name) override;
  ShimState state() const override { return presence_.state(); }
  Result<void> check_mapped(PausedMachine& machine) const override {
    return presence_.check_mapped(machine);
  }
  void activate() override { control_.activate(); }
  void deactivate() override { control_.deactivate(); }
  ShimPlace place() const override { return layout_.place_at(base_); }
  unsigned poll_share(const TrapHandlers& handlers, PollShare share) override {
    return poller_.poll(handlers, share);
  }
  void set_doorbell(std::uint16_t port) override { control_.set_doorbell(port); }
  void answer(std::uint32_t mailbox, const TrapHandlers& handlers) override {
    traps_.answer(mailbox, handlers);
  }
  void heartbeat() override { control_.beat(); }
  bool quiescent() const override { return claims_.quiescent(); }
  /// Where the traps of record_at() go, which wait for nobody.
  RecordRings& rings() { return rings_; }
  /// Whether one of them that finds its ring full waits, instead of being dropped.
  void let_full_rings_wait(bool wait) { control_.let_full_rings_wait(wait); }
  TrapsUnderWay under_way() const override { return claims_.under_way(); }
  bool have_answers(const TrapsUnderWay& traps) const override {
    return claims_.have_answers(traps);
  }
  ShimCounters counters() const override;
  bool contains(GuestVirt pc) const override { return pc.is_in(base_, layout_.bytes); }
  std::optional<Registers> waiting(GuestVirt percpu_base) const override {
    return traps_.waiting(percpu_base);
  }
  std::optional<Displaced> displaced_from(GuestVirt pc, std::uint64_t top) const override;

  /// Deactivates and gives IDT[3] back to the kernel, after every trap point is disarmed. If the
  /// guest has changed the gate meanwhile, or the gate is another kernel's, it is left alone
  /// (Invalid). Slots stay mapped, because a task may be inside one.
  Result<void> retire(PausedMachine& machine);
  /// After retire(), once nobody in the guest is inside (vmm/linux/stacks/stack_check.h): takes it
  /// out of the guest's page tables and leaves zeros. Invalid where the guest has changed what led
  /// to it; then nothing is changed.
  Result<void> remove(PausedMachine& machine);

 private:
  Result<void> write_lists(shim_fetch fetch, std::span<const FetchList> lists);
  struct WrittenList {
    std::uint64_t at = 0;  // from the header
    FetchList list;
  };
  Result<void> change_list(WrittenList& written, const FetchList& to);
  ShimCounters sum_counters() const;
  std::optional<Displaced> displaced_from_shared(std::uint64_t slot, std::uint64_t distance,
                                                 std::uint64_t top) const;
  std::optional<GuestVirt> jumped_from(std::uint64_t offset) const;

  const ShimLayout layout_;
  const GuestVirt base_;
  // Each refers to some of those before it.
  ShimRegion region_;
  ShimPresence presence_;
  ShimSlots slots_;
  ShimTable table_;
  FaultList faults_;
  UserPoints users_;
  ControlWords control_;
  MailboxClaims claims_;
  TrapServer traps_;
  MailboxPoller poller_;
  RecordRings rings_;
  std::optional<ShimMapping> mapping_;
  std::optional<GuestVirt> kexec_slot_;
  std::vector<WrittenList> written_lists_;
  mutable std::mutex counters_lock_;
  mutable ShimCounters counters_;  // that were read last, while the shim was there
};

}  // namespace ringside::vmm
