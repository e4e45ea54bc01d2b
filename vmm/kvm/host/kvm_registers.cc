#include "vmm/kvm/host/kvm_registers.h"

namespace ringside::vmm::kvm {

Registers to_registers(const kvm_regs& regs, const kvm_sregs& sregs, std::uint64_t kernel_gs_base) {
  Registers r;
#define ARCH_REGISTER(field, code, D, n, saved, w, gdb, b) r.field = regs.field;
#define ARCH_SEGMENT(field, D, n, saved, w, gdb, b, kvm) r.field = kvm;
#define ARCH_BASE(field, D, n, gdb, b, kvm) r.field = kvm;
#define ARCH_CONTROL(field, gdb, b, kvm) r.field = kvm;
#include "vmm/arch/x86_64/registers.def"
  return r;
}

kvm_regs to_kvm_regs(const Registers& r) {
  kvm_regs regs{};
#define ARCH_REGISTER(field, code, D, n, saved, w, gdb, b) regs.field = r.field;
#include "vmm/arch/x86_64/registers.def"
  return regs;
}

}  // namespace ringside::vmm::kvm
