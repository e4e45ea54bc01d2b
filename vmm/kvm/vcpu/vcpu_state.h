// Converts a vCPU's state from and to KVM's form: the state that a boot protocol asks for,
// Registers, and text for a person. Pure. Intel SDM volume 3A, chapters 3 (segments) and 9 (modes).
// Fire context: to_registers yes, the rest no.
#pragma once

#include <linux/kvm.h>

#include <cstdint>
#include <string>

#include "vmm/arch/arch.h"
#include "vmm/kvm/boot/boot.h"

namespace ringside::vmm::kvm {

/// The state to start in. `reset`: the vCPU's state after KVM made it; fields that no protocol
/// mentions keep it (the local APIC's base).
kvm_sregs start_sregs(const kvm_sregs& reset, const BootState& boot);
kvm_regs start_regs(const BootState& boot);

Registers to_registers(const kvm_regs& regs, const kvm_sregs& sregs, std::uint64_t kernel_gs_base);
/// The general registers, rip and rflags, which is all that kvm_regs has.
kvm_regs to_kvm_regs(const Registers& registers);

/// Some lines for a person: registers, control registers, tables.
std::string describe(const kvm_regs& regs, const kvm_sregs& sregs);

}  // namespace ringside::vmm::kvm
