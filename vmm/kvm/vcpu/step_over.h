// Gets a vCPU past a breakpoint of ours: executes the instruction that stands under it. Simple ones
// (emulate.h) we execute ourselves; under any other the vCPU is single-stepped while the others
// stay out of the guest, because they would run past a breakpoint that is not there.
// Traps that are the guest's own go back to it. Used by exit_handlers. Threads: the vCPU's own, at
// an exit.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "vmm/kvm/api/kvm_vcpu.h"
#include "vmm/kvm/devices/guest_end.h"
#include "vmm/kvm/vcpu/breakpoints.h"
#include "vmm/kvm/vcpu/current_exit.h"
#include "vmm/kvm/vcpu/gate.h"
#include "vmm/kvm/vcpu/trap_route.h"

namespace ringside::vmm::kvm {

/// Traps that are the guest's own and came to us: they go back into it, at the next entry.
///
/// rip at an int3: KVM_EXIT_DEBUG and KVM_EXIT_INTERNAL_ERROR leave it at the byte. A #BP for the
/// guest wants rip at the byte (SVM, VMX: KVM adds the length), but after it on a KVM that emulates
/// kernel mode.
class GuestTraps {
 public:
  /// `kvm` and `guest_end` must outlive it. A call on KVM that fails ends the guest.
  GuestTraps(VcpuCalls& kvm, TrapRoute route, GuestEnd& guest_end)
      : kvm_(kvm), route_(route), guest_end_(guest_end) {}

  /// A #BP; rip is at the guest's int3.
  void give_back_breakpoint();
  /// A #DB, with the guest's own DR6 (its trap flag), which came to us because we watch something.
  void give_back_debug(std::uint64_t dr6);

 private:
  void inject(std::uint8_t vector);

  VcpuCalls& kvm_;
  const TrapRoute route_;
  GuestEnd& guest_end_;
};

/// How a step enters the guest; the vCPU's own functions, or a test's.
struct GuestEntry {
  /// Waits until the gate lets the vCPU in, then runs the guest until it leaves: 0 with an exit at
  /// hand, else KVM_RUN's errno. Empty when the machine stops.
  std::function<std::optional<int>()> enter;
  /// Does what the exit at hand asks for, as if nobody stepped.
  std::function<void()> handle_exit;
};

class StepOver {
 public:
  /// The parts that it works with; references must outlive it.
  struct Parts {
    VcpuCalls& kvm;
    const VcpuMemory& memory;
    CurrentExit& exit;
    GuestEntry entry;
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
