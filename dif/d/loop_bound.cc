// The number of trips of a counting loop. Being wrong would do no harm: the firing goes round no
// more often than this says, whatever the variable holds by then.
#include <algorithm>

#include "dif/d/desugar.h"

namespace ringside::d {
namespace {

bool is_variable(const Expr* e) {
  return e != nullptr && (e->kind == ExprKind::Name || e->kind == ExprKind::Scoped);
}

bool same_variable(const Expr& a, const Expr& b) {
  return a.kind == b.kind && a.scope == b.scope && *a.text == *b.text;
}

bool is_step(const Expr& e) {
  return e.kind == ExprKind::Unary && e.op >= Op::PreInc;
}

/// Whether evaluating `e` may change `variable`.
bool changes(const Expr* e, const Expr& variable) {
  if (e == nullptr) return false;
  const bool writes = e->kind == ExprKind::Assign || is_step(*e);
  if (writes && is_variable(e->a) && same_variable(*e->a, variable)) return true;
  for (const Expr* part : {e->a, e->b, e->c}) {
    if (changes(part, variable)) return true;
  }
  return std::ranges::any_of(e->list, [&](const Expr* part) { return changes(part, variable); });
}

bool changes(const std::vector<Statement*>& body, const Expr& variable) {
  return std::ranges::any_of(body, [&](const Statement* s) {
    for (const Expr* part : {s->expression, s->init, s->step, s->limit}) {
      if (changes(part, variable)) return true;
    }
    return changes(s->then_body, variable) || changes(s->else_body, variable);
  });
}

/// The amount that `e` adds to `variable`: x++, x -= 2, x = x + 3.
std::optional<std::int64_t> increment(Expr* e, const Expr& variable, const DesugarTools& tools) {
  if (e == nullptr || !is_variable(e->a) || !same_variable(*e->a, variable)) return std::nullopt;
  if (is_step(*e)) return e->op == Op::PreInc || e->op == Op::PostInc ? 1 : -1;
  if (e->kind != ExprKind::Assign) return std::nullopt;
  Expr* amount = e->b;
  Op op = e->op;
  if (!e->compound) {
    const Expr& sum = *e->b;
    const bool on = sum.kind == ExprKind::Binary && is_variable(sum.a);
    if (!on || !same_variable(*sum.a, variable)) return std::nullopt;
    amount = sum.b;
    op = sum.op;
  }
  const auto value = tools.constant(amount);
  if (!value || *value == INT64_MIN || (op != Op::Add && op != Op::Sub)) return std::nullopt;
  return op == Op::Add ? *value : -*value;
}

Op mirrored(Op op) {
  switch (op) {
    case Op::Lt: return Op::Gt;
    case Op::Le: return Op::Ge;
    case Op::Gt: return Op::Lt;
    case Op::Ge: return Op::Le;
    default: return op;
  }
}

__extension__ typedef __int128 Wide;  // differences of 64-bit numbers

std::optional<std::uint64_t> count(Op op, Wide from, Wide to, Wide step) {
  if (step == 0) return std::nullopt;
  if (op == Op::Gt || op == Op::Ge) {  // the same, upside down
    op = mirrored(op);
    from = -from, to = -to, step = -step;
  }
  const Wide distance = to - from;
  Wide trips = -1;
  if (op == Op::Ne) {
    if (distance % step == 0) trips = distance / step;
  } else if (op == Op::Lt || op == Op::Le) {
    const Wide beyond = op == Op::Le ? distance + 1 : distance;
    if (beyond <= 0) return 0;
    if (step > 0) trips = (beyond + step - 1) / step;
  }
  if (trips < 0 || trips > INT64_MAX) return std::nullopt;
  return static_cast<std::uint64_t>(trips);
}

}  // namespace

std::optional<std::uint64_t> proven_trips(const Statement& loop, const DesugarTools& tools) {
  const Expr* init = loop.init;
  const Expr* test = loop.expression;
  if (init == nullptr || test == nullptr || test->kind != ExprKind::Binary) return std::nullopt;
  if (init->kind != ExprKind::Assign || init->compound || !is_variable(init->a)) return {};
  const Expr& variable = *init->a;
  const bool left = is_variable(test->a) && same_variable(*test->a, variable);
  const bool right = is_variable(test->b) && same_variable(*test->b, variable);
  if (left == right) return std::nullopt;
  const auto from = tools.constant(init->b);
  const auto to = tools.constant(left ? test->b : test->a);
  const auto step = increment(loop.step, variable, tools);
  if (!from || !to || !step || changes(loop.then_body, variable)) return std::nullopt;
  return count(left ? test->op : mirrored(test->op), *from, *to, *step);
}

}  // namespace ringside::d
