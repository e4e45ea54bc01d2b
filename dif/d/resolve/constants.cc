// Folding: the values of expressions of constants. The same as DIF would make of them, in all 64
// bits; a type that cuts a value cuts a constant, too.
#include "dif/d/resolve/constants.h"

namespace ringside::d {
namespace {

/// One binary operation, as DIF does it. Empty: not foldable.
std::optional<std::uint64_t> compute(Op op, std::uint64_t a, std::uint64_t b, bool is_signed) {
  const auto x = static_cast<std::int64_t>(a), y = static_cast<std::int64_t>(b);
  const bool less = is_signed ? x < y : a < b;
  switch (op) {
    case Op::Mul: return a * b;
    case Op::Add: return a + b;
    case Op::Sub: return a - b;
    case Op::BitAnd: return a & b;
    case Op::BitXor: return a ^ b;
    case Op::BitOr: return a | b;
    case Op::Div:
    case Op::Mod:
      if (b == 0) return std::nullopt;
      if (is_signed && y == -1) return op == Op::Div ? 0 - a : 0;  // INT64_MIN / -1 would trap
      if (op == Op::Div) return is_signed ? static_cast<std::uint64_t>(x / y) : a / b;
      return is_signed ? static_cast<std::uint64_t>(x % y) : a % b;
    case Op::Shl: return a << (b & 63);
    case Op::Shr: return is_signed ? static_cast<std::uint64_t>(x >> (b & 63)) : a >> (b & 63);
    case Op::Lt: return less;
    case Op::Le: return less || a == b;
    case Op::Gt: return !less && a != b;
    case Op::Ge: return !less;
    case Op::Eq: return a == b;
    case Op::Ne: return a != b;
    case Op::And: return a != 0 && b != 0;
    case Op::Or: return a != 0 || b != 0;
    case Op::Xor: return (a != 0) != (b != 0);
    default: return std::nullopt;
  }
}

}  // namespace

Checked<void> fold(const Types& types, Expr* e) {
  if (e->a == nullptr || !types.is_scalar(e->type)) return {};
  if (e->kind == ExprKind::Cast && e->a->constant && types.is_scalar(e->a->type)) {
    e->constant = types.cast(e->a->type, e->type, *e->a->constant);
  }
  e->late = e->a->late;
  if (e->kind == ExprKind::Unary && e->a->constant && types.is_integer(e->a->type)) {
    const std::uint64_t a = *e->a->constant;
    if (e->op == Op::Plus) e->constant = a;
    // A negative number that is written as unsigned has no bits beyond its type: -1U.
    if (e->op == Op::Neg)
      e->constant = types.is_signed(e->type) ? 0 - a : types.wrap(e->type, 0 - a);
    if (e->op == Op::BitNot) e->constant = ~a;
    if (e->op == Op::Not) e->constant = a == 0;
  }
  if (e->kind != ExprKind::Binary || !e->b->constant || !types.is_integer(e->b->type)) return {};
  const bool divides = e->op == Op::Div || e->op == Op::Mod;
  if (divides && *e->b->constant == 0) {
    return complain("D_DIV_ZERO", e->at, "expression contains division by zero");
  }
  if (!e->a->constant || !types.is_integer(e->a->type)) return {};
  const TypeId work = e->op == Op::Shr ? e->type : types.arithmetic(e->a->type, e->b->type);
  e->constant = compute(e->op, *e->a->constant, *e->b->constant, types.is_signed(work));
  e->late = e->a->late || e->b->late;
  return {};
}

}  // namespace ringside::d
