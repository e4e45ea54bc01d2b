// Converts Registers from and to KVM's form (struct kvm_regs, struct kvm_sregs). Pure.
// Used by our own VMM for its vCPUs, and by what reads those of another process's.
// Fire context: to_registers yes, the rest no.
#pragma once

#include <linux/kvm.h>

#include <cstdint>

#include "vmm/arch/arch.h"

namespace ringside::vmm::kvm {

/// kernel_gs_base: an MSR, which neither of the two has.
inline Registers to_registers(const kvm_regs& regs, const kvm_sregs& sregs,
                              std::uint64_t kernel_gs_base) {
  Registers r;
#define ARCH_REGISTER(field, code, D, n, saved, w, gdb, b) r.field = regs.field;
#define ARCH_SEGMENT(field, D, n, saved, w, gdb, b, kvm) r.field = kvm;
#define ARCH_BASE(field, D, n, gdb, b, kvm) r.field = kvm;
#define ARCH_CONTROL(field, gdb, b, kvm) r.field = kvm;
#include "vmm/arch/x86_64/registers.def"
  return r;
}

/// The general registers, rip and rflags, which is all that kvm_regs has.
inline kvm_regs to_kvm_regs(const Registers& r) {
  kvm_regs regs{};
#define ARCH_REGISTER(field, code, D, n, saved, w, gdb, b) regs.field = r.field;
#include "vmm/arch/x86_64/registers.def"
  return regs;
}

}  // namespace ringside::vmm::kvm
