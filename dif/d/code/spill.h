// The code generator writes DIF with as many registers as an expression needs. This translates it
// to the registers that DIF has; the other values live in hidden clause-local variables. Knows
// nothing of D.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "dif/d/syntax/diagnostic.h"
#include "dif/program/insn.h"
#include "dif/program/program.h"

namespace ringside::d {

/// Registers, with r0, that spilling needs: copys reads three at once.
inline constexpr unsigned kLeastToSpill = 4;

/// One instruction. Its fields are those of its form (dif/program/insn.h). An index, the number of
/// a label, and any other field that is no register is in r1.
struct WideInsn {
  dif::Opcode op;
  unsigned r1 = 0, r2 = 0, rd = 0;
  unsigned part = 0;  // the number of the part of the source that it is of
};

/// The hidden variable that takes the place of a register; they count from 0.
using SpillSlots = std::function<Checked<dif::Variable>(unsigned)>;

/// Writes the words of `text` to `difo`, with the variables that they need, and the start of each
/// part, with the part's number as its line. `labels` has, by number, the instruction that each
/// label stands before. `registers` is the number of registers; it is at least kLeastToSpill if
/// `text` uses more. Then the highest three serve to load and store the spilled values. The lowest
/// ones, in which the outermost operands wait, stay registers.
Checked<void> lower(std::span<const WideInsn> text, std::span<const std::uint32_t> labels,
                    unsigned registers, const SpillSlots& slots, dif::Difo& difo);

}  // namespace ringside::d
