// Makes accesses of model-specific registers leave the guest, so that they become events. The
// vCPU's thread then makes the access in the guest's place (io_exits.h). Used by kvm_exits.
// api.rst: 4.97 KVM_X86_SET_MSR_FILTER, 7.21 KVM_CAP_X86_USER_SPACE_MSR. Does not: reach the
// x2APIC's registers, which KVM never filters; nor the TSC, whose value would be late by the way
// out and in; nor IA32_TSC_ADJUST, which moves the TSC only when the guest itself writes it: KVM
// takes our writes for a state that is being restored (kvm/x86.c, 6.1 and 6.12).
#pragma once

#include "vmm/base/result.h"
#include "vmm/kvm/kvm_vm.h"

namespace ringside::vmm::kvm {

struct MsrFilter {
  bool reads = false, writes = false;
};

/// While the machine is paused. With neither, the guest's accesses stay in KVM again. Io where KVM
/// refuses.
Result<void> filter_msrs(const KvmVm& vm, const MsrFilter& filter);

}  // namespace ringside::vmm::kvm
