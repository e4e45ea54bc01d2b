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

}  // namespace ringside::dif
