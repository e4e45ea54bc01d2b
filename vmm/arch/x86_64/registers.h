// A snapshot of one x86-64 vCPU's registers, as named fields. Values come from the guest: hostile.
// Fire context: yes.
#pragma once

#include <array>
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
  /// Integer arguments 0 to 5 of a function at its first instruction (System V AMD64 ABI 3.2.3).
  std::array<std::uint64_t, 6> call_arguments() const { return {rdi, rsi, rdx, rcx, r8, r9}; }
};

}  // namespace ringside
