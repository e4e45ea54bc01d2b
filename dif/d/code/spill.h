// DIF as the code generator writes it, with as many registers as an expression needs, and its
// translation to those that there are: the others live in hidden clause-local variables.
// Knows nothing of D.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "dif/d/diagnostic.h"
#include "dif/program/insn.h"
#include "dif/program/program.h"

namespace ringside::d {

/// Registers, with r0, that spilling needs: copys reads three at once.
inline constexpr unsigned kLeastToSpill = 4;

/// One instruction. Fields are those of its form (dif/program/insn.h); an index, a number of a
/// label and what else is no register stands in r1.
struct WideInsn {
  dif::Opcode op;
  unsigned r1 = 0, r2 = 0, rd = 0;
  unsigned part = 0;  // the number of the part of the source that it is of
};

/// The hidden variable that takes the place of a register; they count from 0.
using SpillSlots = std::function<Checked<dif::Variable>(unsigned)>;

/// Puts the words of `text` into `difo`, the variables that they need, and where each part begins,
/// with its number for a line. `labels`: by number, the instruction that each stands before.
/// `registers`: how many there are, at least kLeastToSpill where `text` uses more; the highest
/// three are then the loads' and stores' of the rest, and the lowest, which the outermost operands
/// wait in, stay registers.
Checked<void> lower(std::span<const WideInsn> text, std::span<const std::uint32_t> labels,
                    unsigned registers, const SpillSlots& slots, dif::Difo& difo);

}  // namespace ringside::d
