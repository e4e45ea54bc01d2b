#include "vmm/kvm/vcpu/vcpu_state.h"

#include <fmt/format.h>

#include "vmm/kvm/boot/layout.h"

namespace ringside::vmm::kvm {
namespace {

constexpr std::uint16_t kBootCode = 0x10, kBootData = 0x18;  // in the table at kBootGdt
constexpr std::uint16_t kBootGdtLimit = 4 * 8 - 1;
constexpr std::uint64_t kPe = 1, kNe = 1 << 5, kWp = 1 << 16, kPg = 1u << 31;  // CR0
constexpr std::uint64_t kEt = 1 << 4;
constexpr std::uint64_t kPae = 1 << 5;                  // CR4
constexpr std::uint64_t kLme = 1 << 8, kLma = 1 << 10;  // EFER

kvm_segment flat(std::uint16_t selector, std::uint8_t type) {
  kvm_segment segment{};
  segment.limit = 0xffff'ffff;
  segment.selector = selector;
  segment.type = type;
  segment.present = segment.s = segment.g = 1;
  return segment;
}

}  // namespace

kvm_sregs start_sregs(const kvm_sregs& reset, const BootState& boot) {
  const bool long_mode = boot.mode == BootState::Mode::Long64;
  kvm_sregs sregs = reset;
  sregs.cs = flat(kBootCode, 0xb);  // execute, read, accessed
  sregs.cs.l = long_mode ? 1 : 0;
  sregs.cs.db = long_mode ? 0 : 1;
  sregs.ds = flat(kBootData, 3);  // read, write, accessed
  sregs.ds.db = 1;
  sregs.es = sregs.fs = sregs.gs = sregs.ss = sregs.ds;
  sregs.tr = {};
  sregs.tr.limit = 0x67;
  sregs.tr.type = 0xb;  // a busy TSS; KVM takes no other at entry
  sregs.tr.present = 1;
  sregs.ldt = {};
  sregs.ldt.unusable = 1;
  sregs.gdt.base = kBootGdt;
  sregs.gdt.limit = kBootGdtLimit;
  // No gate at all, at an address that tells it from the empty table of a guest that resets itself.
  sregs.idt.base = kBootIdt;
  sregs.idt.limit = 0;
  sregs.cr0 = long_mode ? kPg | kWp | kNe | kEt | kPe : kEt | kPe;
  sregs.cr3 = long_mode ? boot.cr3 : 0;
  sregs.cr4 = long_mode ? kPae : 0;
  sregs.efer = long_mode ? kLme | kLma : 0;
  return sregs;
}

kvm_regs start_regs(const BootState& boot) {
  kvm_regs regs{};
  regs.rip = boot.entry;
  regs.rflags = 2;
  regs.rax = boot.rax;
  regs.rbx = boot.rbx;
  regs.rsi = boot.rsi;
  regs.rdi = boot.rdi;
  regs.rsp = boot.rsp;
  return regs;
}

std::string describe(const kvm_regs& r, const kvm_sregs& s) {
  return fmt::format(
      "rip {:016x}  cs  {:04x}  rflags {:08x}\n"
      "rax {:016x}  rbx {:016x}  rcx {:016x}  rdx {:016x}\n"
      "rsi {:016x}  rdi {:016x}  rbp {:016x}  rsp {:016x}\n"
      "r8  {:016x}  r9  {:016x}  r10 {:016x}  r11 {:016x}\n"
      "r12 {:016x}  r13 {:016x}  r14 {:016x}  r15 {:016x}\n"
      "cr0 {:08x}  cr2 {:016x}  cr3 {:016x}  cr4 {:08x}  efer {:04x}\n"
      "gdt {:016x}+{:x}  idt {:016x}+{:x}  fs {:016x}  gs {:016x}",
      r.rip, s.cs.selector, r.rflags, r.rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8,
      r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, s.cr0, s.cr2, s.cr3, s.cr4, s.efer,
      s.gdt.base, s.gdt.limit, s.idt.base, s.idt.limit, s.fs.base, s.gs.base);
}

}  // namespace ringside::vmm::kvm
