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

/// When a conditional jump is taken: the low four bits of its opcode (Intel SDM volume 1, appendix
/// B).
using Condition = std::uint8_t;
/// The condition of an instruction that depends on no flags.
inline constexpr Condition kNoCondition = 0xff;

/// The flags that conditions are made of, as bits of rflags.
inline constexpr std::uint64_t kCarryFlag = 1 << 0, kParityFlag = 1 << 2, kZeroFlag = 1 << 6,
                               kSignFlag = 1 << 7, kOverflowFlag = 1 << 11;

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
