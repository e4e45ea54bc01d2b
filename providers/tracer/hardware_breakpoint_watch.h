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
// that poll, the others on the session's. Fire context: needs_poller() yes. on_trap() at its place
// may pause the machine, as KprobeWatch does.
#pragma once

#include <cstdint>
#include <optional>

#include "providers/tracepoint/tracepoint.h"
#include "vmm/linux/kernel.h"
#include "vmm/machine.h"
#include "vmm/page_walk.h"
#include "vmm/shim/shim.h"

namespace ringside::providers {

class HardwareBreakpointWatch final : public vmm::TrapSink {
 public:
  /// All must outlive it.
  HardwareBreakpointWatch(vmm::Machine& machine, guest_linux::Kernel& kernel,
                          TracepointTable& table)
      : machine_(machine), kernel_(kernel), table_(table) {}

  /// Makes its own tracepoint; none in a kernel without hardware breakpoints. Unsupported, with the
  /// reason, when none can stand where it has to.
  Result<void> prepare();
  /// All traps go on to `next`, which must outlive them.
  void forward_to(vmm::TrapSink& next) { next_ = &next; }

  void on_trap(const vmm::Trap& trap) override;
  bool needs_poller(GuestVirt address) const override {
    return address == place_ || next_->needs_poller(address);
  }
  bool keeps(const vmm::Trap& trap) override { return next_->keeps(trap); }

 private:
  vmm::Machine& machine_;
  guest_linux::Kernel& kernel_;
  TracepointTable& table_;
  vmm::TrapSink* next_ = nullptr;
  std::optional<GuestVirt> place_;
  std::uint32_t address_at_ = 0;  // where in struct perf_event
};

}  // namespace ringside::providers
