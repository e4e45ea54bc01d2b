// Traps that are the guest's own and came to us: they go back into it, at the next entry.
//
// rip at an int3: KVM_EXIT_DEBUG and KVM_EXIT_INTERNAL_ERROR leave it at the byte. A #BP for the
// guest wants rip at the byte (SVM, VMX: KVM adds the length), but after it on a KVM that emulates
// kernel mode.
// Threads: the vCPU's own, at an exit.
#pragma once

#include <cstdint>

#include "vmm/kvm/guest_end.h"
#include "vmm/kvm/vcpu/trap_route.h"
#include "vmm/kvm/vcpu/vcpu_calls.h"

namespace ringside::vmm::kvm {

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

}  // namespace ringside::vmm::kvm
