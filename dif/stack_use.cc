#include "dif/stack_use.h"

#include <algorithm>

#include "dif/builtin.h"
#include "dif/insn.h"

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

}  // namespace

bool uses_kernel_stack(const Program& program) {
  return std::ranges::any_of(program.clauses, [](const Clause& clause) {
    if (clause.predicate && follows_it(*clause.predicate)) return true;
    return std::ranges::any_of(clause.actions, [](const Action& action) {
      return std::ranges::any_of(action.arguments, follows_it);
    });
  });
}

bool records_user_code(const Program& program) {
  const auto is_user_code = [](const Difo& difo) {
    const ValueKind kind = difo.result.kind;
    return kind == ValueKind::UserStack || kind == ValueKind::UserSymbol ||
           kind == ValueKind::UserModule || kind == ValueKind::UserAddress;
  };
  return std::ranges::any_of(program.clauses, [&](const Clause& clause) {
    return std::ranges::any_of(clause.actions, [&](const Action& action) {
      return std::ranges::any_of(action.arguments, is_user_code);
    });
  });
}

}  // namespace ringside::dif
