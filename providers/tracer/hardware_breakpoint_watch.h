// Keeps the guest's own hardware breakpoints working. A jump of ours displaces instructions: a
// copy of them runs elsewhere, so a hardware breakpoint on one would never be hit. When the
// guest's kernel sets such a breakpoint, this watch turns the jump into an int3. The other
// instructions then run where they were.
//
// It stands at (arch/x86/kernel/hw_breakpoint.c, since 2.6.33):
//   arch_install_hw_breakpoint(struct perf_event *): called each time that a CPU gets one; for
//     a task's own breakpoint, whenever that task runs
//
// Used by the tracer of a running kernel, where there may be jumps. Threads: on_trap() on those
// that poll, the others on the session's. Fire context: no; on_trap() may pause the machine.
#pragma once

#include <cstdint>
#include <optional>

#include "providers/trap_points/trap_point_table.h"
#include "vmm/linux/kernel.h"
#include "vmm/machine.h"
#include "vmm/page_walk.h"
#include "vmm/shim/trap.h"

namespace ringside::providers {

class HardwareBreakpointWatch final : public vmm::TrapWatch {
 public:
  /// All must outlive it.
  HardwareBreakpointWatch(vmm::Machine& machine, guest_linux::Kernel& kernel, TrapPointTable& table)
      : machine_(machine), kernel_(kernel), table_(table) {}

  /// Makes its own trap point; none in a kernel without hardware breakpoints. Unsupported, with the
  /// reason, when none can stand where it has to.
  Result<void> prepare();
  /// After prepare(): from now on the traps at its place come here.
  void add_to(vmm::TrapHandlers& handlers) {
    if (place_) handlers.add(*place_, *this);
  }

  void on_trap(const vmm::Trap& trap) override;

 private:
  vmm::Machine& machine_;
  guest_linux::Kernel& kernel_;
  TrapPointTable& table_;
  std::optional<GuestVirt> place_;
  std::uint32_t address_at_ = 0;  // where in struct perf_event
};

}  // namespace ringside::providers
