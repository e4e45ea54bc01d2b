// The calling convention of compiled code (System V AMD64 ABI 3.2.2 and 3.2.3).
// Fire context: yes.
#pragma once

#include <array>
#include <cstdint>

#include "vmm/arch/x86_64/registers.h"

namespace ringside::arch {

/// Integers and pointers, in their order; further ones lie on the stack.
inline constexpr std::array<Register, 6> kArgumentRegisters = {&Registers::rdi, &Registers::rsi,
                                                               &Registers::rdx, &Registers::rcx,
                                                               &Registers::r8,  &Registers::r9};
inline constexpr Register kReturnRegister = &Registers::rax;

/// At a function's first instruction the stack pointer leads to the return address; the arguments
/// that are in no register follow it, a word each.
inline constexpr std::uint32_t kStackWord = 8;
inline constexpr std::uint32_t kFirstStackArgument = kStackWord;

/// A frame pointer points to this: the caller's frame pointer, then the return address.
struct FrameRecord {
  std::uint64_t frame_pointer, return_address;
};

}  // namespace ringside::arch
