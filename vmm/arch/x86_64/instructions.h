// Facts about instructions that need no decoder. Decoding is in disasm.
// Fire context: yes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ringside::arch {

/// In bytes (Intel SDM volume 2, 2.3.11).
inline constexpr std::size_t kLongestInstruction = 15;

/// int3: traps to vector 3, with rip after it.
inline constexpr std::byte kBreakpoint{0xcc};
inline constexpr unsigned kBreakpointVector = 3;

/// The vector of #DB: single steps and debug registers.
inline constexpr unsigned kDebugVector = 1;

/// The opcodes of a jump and a call with a distance from their end: 8 bits of it follow a short
/// one, 32 bits a near one.
inline constexpr std::byte kShortJump{0xeb}, kNearJump{0xe9}, kNearCall{0xe8};
/// hlt: the CPU rests until the next interrupt.
inline constexpr std::byte kHalt{0xf4};
/// out imm8, al: writes a byte to the port that follows.
inline constexpr std::byte kPortWrite{0xe6};
/// Whether a jump of either kind begins so.
constexpr bool is_jump(std::byte opcode) {
  return opcode == kShortJump || opcode == kNearJump;
}

/// When a conditional jump is taken: the low four bits of its opcode (Intel SDM volume 1, appendix
/// B).
using Condition = std::uint8_t;
/// The condition of an instruction that depends on no flags.
inline constexpr Condition kNoCondition = 0xff;

/// The flags that conditions are made of, as bits of rflags.
inline constexpr std::uint64_t kCarryFlag = 1 << 0, kParityFlag = 1 << 2, kZeroFlag = 1 << 6,
                               kSignFlag = 1 << 7, kOverflowFlag = 1 << 11;
/// More flags: a carry out of the low four bits, a trap after each instruction, interrupts are
/// taken, no debug trap at the next instruction, virtual-8086 mode.
inline constexpr std::uint64_t kAdjustFlag = 1 << 4, kTrapFlag = 1 << 8, kInterruptFlag = 1 << 9,
                               kResumeFlag = 1 << 16, kVmFlag = 1 << 17;

/// Whether a jump with this condition would be taken under `rflags`; one without always is.
constexpr bool condition_holds(Condition condition, std::uint64_t rflags) {
  if (condition == kNoCondition) return true;
  const auto is_set = [rflags](std::uint64_t flag) { return (rflags & flag) != 0; };
  const bool less = is_set(kSignFlag) != is_set(kOverflowFlag);
  const bool even_nibble = [&] {
    switch (condition >> 1 & 7) {
      case 0: return is_set(kOverflowFlag);
      case 1: return is_set(kCarryFlag);
      case 2: return is_set(kZeroFlag);
      case 3: return is_set(kCarryFlag | kZeroFlag);
      case 4: return is_set(kSignFlag);
      case 5: return is_set(kParityFlag);
      case 6: return less;
      default: return is_set(kZeroFlag) || less;
    }
  }();
  return even_nibble != ((condition & 1) != 0);
}

}  // namespace ringside::arch
