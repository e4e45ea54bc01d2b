// One walk over an object's instructions, in order. Branches only lead forward, so each instruction
// is met once, after all that lead to it. Instructions that nothing leads to are left out.
// For what has to be known of the registers before an instruction, whichever way led to it.
// The object need not be verified: a branch that leads elsewhere than forward leads nowhere.
// Fire context: no.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "dif/program/insn.h"
#include "dif/program/program.h"

namespace ringside::dif {

/// `first` is what is known before the first instruction. `step(at, instruction, known)` makes
/// `known` what holds after the instruction. Where several ways join, `known.meet(other)` keeps
/// what holds on both. `branch(instruction, taken, known)` adds what holds on one of the two ways
/// that a branch leads to.
template <class Known, class Step, class Branch>
void walk_forward(const Difo& difo, const Known& first, Step step, Branch branch) {
  std::vector<std::optional<Known>> before(difo.text.size());  // empty: nothing leads there
  const auto lead_to = [&before](std::size_t at, const Known& known) {
    if (at >= before.size()) return;
    if (before[at]) {
      before[at]->meet(known);
    } else {
      before[at] = known;
    }
  };
  lead_to(0, first);
  for (std::size_t at = 0; at < before.size(); ++at) {
    if (!before[at]) continue;
    const Insn in{difo.text[at]};
    Known known = *before[at];
    step(at, in, known);
    if (in.op() == Opcode::Ret) continue;
    if (is_branch(in.op())) {
      Known there = known;
      branch(in, true, there);
      lead_to(in.label(), there);
      branch(in, false, known);
    }
    if (in.op() != Opcode::Ba) lead_to(at + 1, known);
  }
}

template <class Known, class Step>
void walk_forward(const Difo& difo, const Known& first, Step step) {
  walk_forward(difo, first, step, [](Insn, bool, Known&) {});
}

}  // namespace ringside::dif
