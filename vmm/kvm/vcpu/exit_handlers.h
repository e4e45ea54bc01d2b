// The exits of a vCPU by kind, each class with the exits that it handles: breakpoints of ours,
// accesses to devices and model-specific registers, and those after which the guest does not go on.
// Used by vcpu, which chooses. Threads: the vCPU's own.
// Fire context: the sink is called from here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "vmm/kvm/devices/bus.h"
#include "vmm/kvm/devices/guest_end.h"
#include "vmm/kvm/vcpu/current_exit.h"
#include "vmm/kvm/vcpu/exit_subscription.h"
#include "vmm/kvm/vcpu/step_over.h"

namespace ringside::vmm::kvm {

/// Exits that may be breakpoints of ours: tells which of them are, calls the sink, and gets the
/// vCPU past the breakpoint. Traps that are the guest's own go back to it.
class BreakpointExits {
 public:
  /// All must outlive it.
  BreakpointExits(CurrentExit& exit, const Breakpoints& breakpoints, ExitSubscription& subscription,
                  StepOver& step_over, GuestTraps& traps)
      : exit_(exit),
        breakpoints_(breakpoints),
        subscription_(subscription),
        step_over_(step_over),
        traps_(traps) {}

  /// KVM_EXIT_DEBUG.
  void on_debug();
  /// KVM_EXIT_IO: whether it was a breakpoint's, and is dealt with.
  bool on_port();
  /// KVM_EXIT_INTERNAL_ERROR: whether KVM stumbled over an int3, and that is dealt with.
  bool on_internal_error();

 private:
  void on_int3(GuestVirt at);
  bool on_first_byte(GuestVirt at);
  void on_watched(GuestVirt at);
  void call_sink(GuestVirt site);
  std::optional<GuestVirt> met_at(GuestVirt rip) const;

  CurrentExit& exit_;
  const Breakpoints& breakpoints_;
  ExitSubscription& subscription_;
  StepOver& step_over_;
  GuestTraps& traps_;
};

/// Exits that access devices and model-specific registers: ports, memory outside RAM, MSRs that a
/// filter gave us. Makes the access and tells it as an event where that is wanted.
class IoExits {
 public:
  /// All must outlive it.
  IoExits(CurrentExit& exit, VcpuCalls& kvm, const Bus& ports, const Bus& mmio,
          ExitSubscription& subscription)
      : exit_(exit), kvm_(kvm), ports_(ports), mmio_(mmio), subscription_(subscription) {}

  /// KVM_EXIT_IO. `data`: the bytes of all its accesses, in kvm_run; empty when KVM's numbers made
  /// no sense.
  void on_port(std::span<std::byte> data);
  /// KVM_EXIT_MMIO.
  void on_mmio();
  /// KVM_EXIT_X86_RDMSR and KVM_EXIT_X86_WRMSR. An MSR that KVM does not take is a #GP.
  void on_msr_read();
  void on_msr_write();

 private:
  CurrentExit& exit_;
  VcpuCalls& kvm_;
  const Bus& ports_;
  const Bus& mmio_;
  ExitSubscription& subscription_;
};

/// Exits after which the guest does not go on: it shut down, or KVM cannot run it. Records how it
/// ended, with the last words for the user.
class FatalExits {
 public:
  /// Both must outlive it.
  FatalExits(const CurrentExit& exit, GuestEnd& guest_end) : exit_(exit), guest_end_(guest_end) {}

  /// Remembers where the vCPU is, for a triple fault after which the CPU does not tell.
  void note_place() {
    const auto& registers = exit_.state().s.regs;
    last_rip_ = registers.regs.rip;
    last_cr3_ = registers.sregs.cr3;
  }

  /// KVM_EXIT_SHUTDOWN: a triple fault, which some guests make on purpose to reboot.
  void on_shutdown();
  /// KVM_EXIT_SYSTEM_EVENT.
  void on_system_event();
  /// KVM_EXIT_INTERNAL_ERROR.
  void on_internal_error();
  /// An exit that we do not handle, KVM_EXIT_FAIL_ENTRY among them.
  void on_unknown();
  /// KVM_RUN failed with `error`, an errno.
  void on_run_error(int error);

 private:
  const CurrentExit& exit_;
  GuestEnd& guest_end_;
  std::uint64_t last_rip_ = 0, last_cr3_ = 0;
};

}  // namespace ringside::vmm::kvm
