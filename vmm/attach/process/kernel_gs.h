// Finds the GS base that `swapgs` would load (kernel_gs_base) of a vCPU. KVM does not show it:
// KVM_SYNC_X86_REGS and KVM_SYNC_X86_SREGS do not store it. A vCPU in user mode has the base with
// which it left the kernel. Used by ProcessVcpus.
#pragma once

#include <cstdint>
#include <map>

#include "vmm/arch/arch.h"

namespace ringside::vmm {

class KernelGs {
 public:
  /// Fills kernel_gs_base in, where the vCPU of this number has been seen in the kernel. In the
  /// kernel itself it is the program's, and 0 says that nobody knows.
  void complete(unsigned vcpu, Registers& registers) {
    if (registers.in_user_mode()) {
      registers.kernel_gs_base = last_[vcpu];
    } else if (arch::in_kernel_half(GuestVirt(registers.gs_base))) {
      // Before its swapgs it has the program's.
      last_[vcpu] = registers.gs_base;
    }
  }

 private:
  std::map<unsigned, std::uint64_t> last_;  // 0: never seen there
};

}  // namespace ringside::vmm
