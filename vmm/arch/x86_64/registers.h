// A snapshot of one x86-64 vCPU's registers, as named fields. Values come from the guest: hostile.
// Fire context: yes.
#pragma once

#include <cstdint>

namespace ringside {

struct Registers {
  std::uint64_t rax = 0, rbx = 0, rcx = 0, rdx = 0, rsi = 0, rdi = 0, rbp = 0, rsp = 0;
  std::uint64_t r8 = 0, r9 = 0, r10 = 0, r11 = 0, r12 = 0, r13 = 0, r14 = 0, r15 = 0;
  std::uint64_t rip = 0, rflags = 0;
  std::uint64_t cs = 0, ss = 0;
  std::uint64_t fs_base = 0, gs_base = 0, kernel_gs_base = 0;
  std::uint64_t cr0 = 0, cr3 = 0, cr4 = 0, efer = 0;

  bool in_user_mode() const { return (cs & 3) == 3; }
};

/// A general register by its number in an instruction's encoding (0 rax, 1 rcx... 15 r15).
constexpr std::uint64_t Registers::*register_by_encoding(unsigned number) {
  using R = Registers;
  constexpr std::uint64_t Registers::*kAll[] = {
      &R::rax, &R::rcx, &R::rdx, &R::rbx, &R::rsp, &R::rbp, &R::rsi, &R::rdi,
      &R::r8,  &R::r9,  &R::r10, &R::r11, &R::r12, &R::r13, &R::r14, &R::r15};
  return kAll[number & 15];
}

}  // namespace ringside
