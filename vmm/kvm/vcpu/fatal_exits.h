// Exits after which the guest does not go on: it shut down, or KVM cannot run it. Records how it
// ended, with the last words for the user.
// Used by vcpu. Threads: the vCPU's own.
#pragma once

#include <cstdint>

#include "vmm/kvm/guest_end.h"
#include "vmm/kvm/vcpu/current_exit.h"

namespace ringside::vmm::kvm {

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
