// The host's end of an installed shim, over the shared region. It implements vmm/shim/shim.h; only
// shim_install.cc makes one. It joins parts that each have their own state: the shim's presence
// (shim_presence.h), slots, table, list of faults, control words, claims, the server of one trap,
// and the poller. A function that needs only one part forwards to it. Fire context and threads: as
// vmm/shim/shim.h says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "guest-shim/mailbox_abi.h"
#include "vmm/shim/control_words.h"
#include "vmm/shim/counter_reader.h"
#include "vmm/shim/fault_list.h"
#include "vmm/shim/mailbox_claims.h"
#include "vmm/shim/mailbox_poller.h"
#include "vmm/shim/shim.h"
#include "vmm/shim/shim_layout.h"
#include "vmm/shim/shim_mapping.h"
#include "vmm/shim/shim_presence.h"
#include "vmm/shim/shim_region.h"
#include "vmm/shim/shim_slots.h"
#include "vmm/shim/shim_table.h"
#include "vmm/shim/trap_server.h"

namespace ringside::vmm {

class InstalledShim final : public Shim {
 public:
  /// The region has the layout `layout`, with the image and its header in place, and is mapped in
  /// the guest at `base`. Everything from the table on is zero, except the slots `occupied`, by
  /// address. Without a mapping it cannot be removed.
  InstalledShim(GuestMemory& memory, const ShimLayout& layout, GuestVirt base, unsigned vcpus,
                SavedGate gate, std::optional<ShimMapping> mapping = std::nullopt,
                std::vector<OccupiedSlots> occupied = {},
                ShimPresence::GuestRuns runs = ShimPresence::GuestRuns::OnProcessor);

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
  void note_arming() override { control_.note_arming(); }
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
  void activate() override { control_.activate(); }
  void deactivate() override { control_.deactivate(); }
  Result<void> retire(PausedMachine& machine) override;
  Result<void> remove(PausedMachine& machine) override;
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
  TrapsUnderWay under_way() const override { return claims_.under_way(); }
  bool have_answers(const TrapsUnderWay& traps) const override {
    return claims_.have_answers(traps);
  }
  ShimCounters counters() const override { return counters_.read(); }
  bool contains(GuestVirt pc) const override { return pc.is_in(base_, layout_.bytes); }
  std::optional<Registers> waiting(GuestVirt percpu_base) const override {
    return traps_.waiting(percpu_base);
  }
  std::optional<GuestVirt> displaced_from(GuestVirt pc) const override;

 private:
  std::optional<GuestVirt> jumped_from(std::uint64_t offset) const;

  const ShimLayout layout_;
  const GuestVirt base_;
  // Each refers to some of those before it.
  ShimRegion region_;
  ShimPresence presence_;
  ShimSlots slots_;
  ShimTable table_;
  FaultList faults_;
  ControlWords control_;
  MailboxClaims claims_;
  TrapServer traps_;
  MailboxPoller poller_;
  CounterReader counters_;
  std::optional<ShimMapping> mapping_;
  std::optional<GuestVirt> kexec_slot_;
};

}  // namespace ringside::vmm
