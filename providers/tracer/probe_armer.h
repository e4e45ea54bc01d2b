// The places of probes in a running Linux: makes them for providers, and arms and restores them,
// all at once, or some while the others fire. It promises that no probe fires before or after its
// enabling, and that no firing is lost meanwhile:
//   enabling   slots are written, then the table's entries and the int3s, in one pause; the
//              dispatcher's next epoch begins in that pause
//   disabling  the next epoch begins; when nobody uses the old epoch any more, the bytes are
//              restored, in one pause; when every trap that began before has its answer, the
//              shim forgets the points
// Used by the tracer of a running kernel. Threads: the session's, beside firings.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "providers/context/binding.h"
#include "providers/dispatch/dispatch.h"
#include "providers/trap_points/trap_point_table.h"
#include "providers/trap_points/user_point_table.h"
#include "vmm/machine.h"
#include "vmm/shim/trap_table.h"

namespace ringside::providers {

class ProbeArmer final : public ProbePoints {
 public:
  /// All must outlive it.
  ProbeArmer(vmm::Machine& machine, vmm::TrapTable& shim, TrapPointTable& table,
             UserPointTable& users)
      : machine_(machine), shim_(shim), table_(table), users_(users) {}

  Result<ProbeSite> examine(GuestVirt at, SitePolicy policy) override {
    return table_.examine(at, policy);
  }
  std::uint64_t generation() const override { return table_.generation(); }
  /// It fires from arm() or arm_added() on. Unsupported once tracing has begun without any point:
  /// then nobody listens to the shim.
  Result<void> bind(const ProbeSite& site, const Binding& binding) override;
  Result<void> bind_in_file(const FilePlace& place, const Binding& binding) override;
  void forget(std::span<const dif::ProbeId> probes) override;

  /// Tracing begins: what was bound so far, for the dispatcher's first epoch.
  DispatchTable::Change take_first();
  /// Arms all, in one pause, at a moment when the guest is not changing its own text.
  Result<void> arm();
  /// When it returns, the points that were bound since then stand and fire; with an error, none of
  /// them does and they are forgotten. The others fire all the time. `wait`: for what of the guest.
  enum class WaitFor : std::uint8_t {
    QuietText,
    /// For points in the text of a module that is being loaded. The code that changes text may wait
    /// for a vCPU that waits for us. So the wait for other changes is limited, and then only
    /// changes of kprobes count: the kernel changes only its patched sites in that module, and no
    /// point stands there.
    QuietKprobes,
  };
  Result<void> arm_added(TrapDispatcher& dispatcher, WaitFor wait = WaitFor::QuietText);
  /// Those that were bound since then and not armed.
  std::span<const DispatchTable::EnabledBinding> added() const { return bound_.added; }
  /// Forgets what was bound since then and not armed.
  void abandon_added();
  /// When it returns these probes fire no more, and no trap of theirs waits for its answer. With an
  /// error, too; but then int3s may still stand that lead nowhere.
  Result<void> remove(TrapDispatcher& dispatcher, std::span<const dif::ProbeId> probes);
  /// Restores all. Tries again for some time where a vCPU shows other page tables.
  Result<void> disarm();

 private:
  using Restore = UserPointTable::Which;  // which trap points

  Result<vmm::PausedMachine> pause_while_text_is_quiet(WaitFor wait = WaitFor::QuietText);
  Result<vmm::TrapsUnderWay> try_restore(Restore what);
  Result<vmm::TrapsUnderWay> restore(Restore what);
  Result<void> write_user_slots();
  Result<void> arm_all(vmm::PausedMachine& machine);
  Result<void> disarm(vmm::PausedMachine& machine, Restore what);
  void release(GuestVirt place);
  void release(std::span<const GuestVirt> places);
  void release_bound();

  vmm::Machine& machine_;
  vmm::TrapTable& shim_;
  TrapPointTable& table_;
  UserPointTable& users_;
  DispatchTable::Change bound_;  // and not armed yet
  bool is_without_ = false;      // tracing has begun without any point
};

}  // namespace ringside::providers
