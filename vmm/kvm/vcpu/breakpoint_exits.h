// Exits that may be breakpoints of ours: tells which of them are, calls the sink, and gets the vCPU
// past the breakpoint. Traps that are the guest's own go back to it.
// Used by vcpu. Threads: the vCPU's own.
// Fire context: the sink is called from here.
#pragma once

#include <optional>

#include "vmm/kvm/vcpu/exit_subscription.h"
#include "vmm/kvm/vcpu/step_over.h"

namespace ringside::vmm::kvm {

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

}  // namespace ringside::vmm::kvm
