#include "dif/verify/stack_use.h"

#include <algorithm>

#include "dif/program/builtin.h"
#include "dif/program/insn.h"

namespace ringside::dif {
namespace {

bool follows_it(const Difo& difo) {
  if (difo.result.kind == ValueKind::KernelStack) return true;
  return std::ranges::any_of(difo.text, [](std::uint32_t word) {
    const Insn insn{word};
    if (insn.op() != Opcode::Ldgs) return false;
    const auto variable = static_cast<Builtin>(insn.index());
    // The caller of a system call is found on the stack.
    return variable == Builtin::Stackdepth || variable == Builtin::Caller;
  });
}

template <class Test>
bool any_difo(const Program& program, Test test) {
  bool found = false;
  for_each_difo(program, [&](const Difo& difo) { found = found || test(difo); });
  return found;
}

}  // namespace

bool uses_kernel_stack(const Program& program) {
  return any_difo(program, follows_it);
}

bool records_user_code(const Program& program) {
  return any_difo(program, [](const Difo& difo) { return is_user_code(difo.result.kind); });
}

/// All branches lead forward, so one pass sees every way to an instruction before it.
bool returns_constant(const Difo& difo) {
  // By instruction: the registers that hold constants there, whichever way led to it.
  std::vector<unsigned> constants(difo.text.size(), ~0U);
  std::vector<bool> reached(difo.text.size());
  const auto lead_to = [&](std::size_t at, unsigned known) {
    constants[at] &= known;
    reached[at] = true;
  };
  lead_to(0, 1);  // r0 is always 0
  std::size_t next = 0;
  for (const std::uint32_t word : difo.text) {
    const std::size_t here = next++;
    if (!reached[here]) continue;
    const Insn insn{word};
    const Opcode op = insn.op();
    const unsigned result = 1U << insn.rd() % kRegisters;
    unsigned known = constants[here];
    if (op == Opcode::Ret) {
      if ((known & result) == 0) return false;
      continue;
    }
    if (is_branch(op)) {
      lead_to(insn.label(), known);
      if (op == Opcode::Ba) continue;
    } else {
      const bool copied = op == Opcode::Mov && (known >> insn.r1() % kRegisters & 1) != 0;
      const bool constant = op == Opcode::Setx || op == Opcode::Sets || copied;
      known = constant ? known | result : known & ~result;
    }
    lead_to(next, known | 1);
  }
  return true;
}

}  // namespace ringside::dif
