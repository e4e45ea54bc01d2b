#include "dif/verify/stack_use.h"

#include <algorithm>

#include "dif/program/builtin.h"
#include "dif/program/insn.h"
#include "dif/verify/forward_walk.h"

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

/// The registers that hold constants before an instruction, by bit; r0 is always 0.
struct Constants {
  unsigned registers = 1;

  bool has(unsigned number) const { return (registers >> number % kRegisters & 1) != 0; }
  void set(unsigned number, bool constant) {
    const unsigned bit = 1U << number % kRegisters;
    registers = (constant ? registers | bit : registers & ~bit) | 1;
  }
  void meet(const Constants& other) { registers &= other.registers; }
};

}  // namespace

bool uses_kernel_stack(const Program& program) {
  return any_difo(program, follows_it);
}

bool records_user_code(const Program& program) {
  return any_difo(program, [](const Difo& difo) { return is_user_code(difo.result.kind); });
}

bool returns_constant(const Difo& difo) {
  bool constant = !difo.text.empty();
  walk_forward(difo, Constants(), [&constant](std::size_t, Insn in, Constants& known) {
    if (in.op() == Opcode::Ret) {
      constant = constant && known.has(in.rd());
    } else if (!is_branch(in.op())) {
      const bool copied = in.op() == Opcode::Mov && known.has(in.r1());
      known.set(in.rd(), copied || in.op() == Opcode::Setx || in.op() == Opcode::Sets);
    }
  });
  return constant;
}

}  // namespace ringside::dif
