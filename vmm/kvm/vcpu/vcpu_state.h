// A vCPU's state in KVM's form: the state that a boot protocol asks for, and text for a person.
// Pure. Intel SDM volume 3A, chapters 3 (segments) and 9 (modes).
#pragma once

#include <linux/kvm.h>

#include <string>

#include "vmm/kvm/boot/boot.h"

namespace ringside::vmm::kvm {

/// The state to start in. `reset`: the vCPU's state after KVM made it; fields that no protocol
/// mentions keep it (the local APIC's base).
kvm_sregs start_sregs(const kvm_sregs& reset, const BootState& boot);
kvm_regs start_regs(const BootState& boot);

/// Some lines for a person: registers, control registers, tables.
std::string describe(const kvm_regs& regs, const kvm_sregs& sregs);

}  // namespace ringside::vmm::kvm
