// Exits that access devices and model-specific registers: ports, memory outside RAM, MSRs that a
// filter gave us. Makes the access and tells it as an event where that is wanted.
// Used by vcpu. Threads: the vCPU's own.
#pragma once

#include <span>

#include "vmm/kvm/devices/bus.h"
#include "vmm/kvm/vcpu/current_exit.h"
#include "vmm/kvm/vcpu/exit_subscription.h"

namespace ringside::vmm::kvm {

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

}  // namespace ringside::vmm::kvm
