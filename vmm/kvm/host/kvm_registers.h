// Converts Registers from and to KVM's form (struct kvm_regs, struct kvm_sregs). Pure.
// Used by our own VMM for its vCPUs, and by what reads those of another process's.
// Fire context: to_registers yes, the rest no.
#pragma once

#include <linux/kvm.h>

#include <cstdint>

#include "vmm/arch/arch.h"

namespace ringside::vmm::kvm {

/// kernel_gs_base: an MSR, which neither of the two has.
Registers to_registers(const kvm_regs& regs, const kvm_sregs& sregs, std::uint64_t kernel_gs_base);
/// The general registers, rip and rflags, which is all that kvm_regs has.
kvm_regs to_kvm_regs(const Registers& registers);

}  // namespace ringside::vmm::kvm
