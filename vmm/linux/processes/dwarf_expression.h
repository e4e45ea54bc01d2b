// Evaluates DWARF expressions (DWARF 5, section 2.5) as unwind tables have them: where a frame
// begins, and where a register was saved. Linkers write them for PLT stubs, C libraries for signal
// frames, and compilers for functions that realign their stack.
// Supports constants, registers' values, memory, the stack, arithmetic, comparisons and branches.
// Does not support what only debug information has: pieces, types, calls, locations in registers.
// Hostile input: the stack and the number of steps are bounded. Fire context: yes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "vmm/base/guest_reader.h"

namespace ringside::guest_linux {

/// Registers by their DWARF numbers (System V AMD64 ABI, figure 3.36; arch::kByDwarf): 16 is the
/// return address, which is where the frame goes on.
using FrameRegisters = std::array<std::uint64_t, 17>;

/// How much a walk may still do. A step is a table entry, an instruction or a word.
class StepBudget {
 public:
  explicit StepBudget(std::uint32_t steps) : left_(steps) {}
  /// False when there are not so many left; then there are none.
  bool take(std::uint32_t steps = 1) {
    const bool enough = steps <= left_;
    left_ = enough ? left_ - steps : 0;
    return enough;
  }
  bool is_empty() const { return left_ == 0; }

 private:
  std::uint32_t left_;
};

/// Where an expression lies in the image's memory.
struct DwarfExpression {
  GuestVirt at;
  std::uint16_t length = 0;
};

/// The value on top of the stack at the end. The expression is read from `image`, the words that it
/// asks for from `process`. `first`: what lies on the stack at the beginning. Empty: the expression
/// is malformed, needs what is not supported, or cannot be read.
std::optional<std::uint64_t> evaluate(const DwarfExpression& expression, const GuestReader& image,
                                      const GuestReader& process, const FrameRegisters& registers,
                                      std::optional<std::uint64_t> first, StepBudget& budget);

}  // namespace ringside::guest_linux
