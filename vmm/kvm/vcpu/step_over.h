// Gets a vCPU past a breakpoint of ours: executes the instruction that stands under it. Simple ones
// (emulate.h) we execute ourselves; under any other the vCPU is single-stepped while the others
// stay out of the guest, because they would run past a breakpoint that is not there.
// Used by breakpoint_exits. Threads: the vCPU's own, at an exit.
#pragma once

#include <cstdint>

#include "vmm/kvm/guest_end.h"
#include "vmm/kvm/vcpu/breakpoints.h"
#include "vmm/kvm/vcpu/current_exit.h"
#include "vmm/kvm/vcpu/gate.h"
#include "vmm/kvm/vcpu/guest_entry.h"
#include "vmm/kvm/vcpu/guest_traps.h"

namespace ringside::vmm::kvm {

class StepOver {
 public:
  /// The parts that it works with; all must outlive it.
  struct Parts {
    VcpuCalls& kvm;
    const VcpuMemory& memory;
    CurrentExit& exit;
    GuestEntry& entry;
    GuestTraps& traps;
    Gate& gate;
    Breakpoints& breakpoints;
    GuestEnd& guest_end;
  };
  /// `can_block_irqs`: TrapBehavior's.
  StepOver(const Parts& parts, bool can_block_irqs)
      : parts_(parts), can_block_irqs_(can_block_irqs) {}

  /// Executes the instruction under the breakpoint `site`, which the vCPU met at `rip`: the same
  /// address, or another one of the same code. A port write covers two bytes: if the first
  /// instruction is one byte long, the second one is executed, too.
  void execute(GuestVirt site, GuestVirt rip) { execute_from(site, rip, 0); }
  /// The same for a vCPU that came to the breakpoint's second byte.
  void execute_second_byte(GuestVirt site) { execute_from(site, site, 1); }

  /// Takes back a port exit whose `out` is at `at`: the vCPU goes on at `at`, with the code that is
  /// there by then.
  void take_back_out(GuestVirt at);

 private:
  void execute_from(GuestVirt site, GuestVirt rip, std::uint64_t offset);
  bool execute_simply(GuestVirt site, GuestVirt at, std::uint64_t offset);
  void step_alone(GuestVirt site, GuestVirt at);
  void step_from(GuestVirt at);
  bool ends_step(GuestVirt at);

  const Parts parts_;
  const bool can_block_irqs_;
};

}  // namespace ringside::vmm::kvm
