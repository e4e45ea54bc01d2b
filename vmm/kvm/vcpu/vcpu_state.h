// A vCPU's state in KVM's form: what a boot protocol asks for, and what was found, as Registers or
// as text for a person. Pure.
// Intel SDM volume 3A, chapters 3 (segments) and 9 (modes).
// Fire context: to_registers yes, the rest no.
#pragma once

#include <linux/kvm.h>

#include <cstdint>
#include <string>

#include "vmm/arch/arch.h"
#include "vmm/kvm/boot/boot.h"

namespace ringside::vmm::kvm {

/// `reset`: what KVM made, so that what no protocol mentions stays as it is (the local APIC's
/// base).
kvm_sregs start_sregs(const kvm_sregs& reset, const BootState& boot);
kvm_regs start_regs(const BootState& boot);

Registers to_registers(const kvm_regs& regs, const kvm_sregs& sregs, std::uint64_t kernel_gs_base);
/// The general registers back; the rest of `regs` has nothing else.
kvm_regs to_kvm_regs(const Registers& registers);

/// Some lines for a person: registers, control registers, tables.
std::string describe(const kvm_regs& regs, const kvm_sregs& sregs);

}  // namespace ringside::vmm::kvm
