// In this file: folding of constants, then the rules of operators.
#include "dif/d/resolve/operator_rules.h"

#include <fmt/format.h>

#include "dif/d/resolve/identifier_table.h"
#include "dif/d/syntax/print_tree.h"

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

/// Whether the string `text` is a variable's or a member's, whose characters may be written.
bool OperatorRules::has_writable_text(const Expr& text) {
  if (text.kind == ExprKind::KernelSymbol) return false;
  const bool built_in =
      text.identifier != nullptr && text.identifier->kind != Identifier::Kind::Variable;
  return text.is_lvalue && !built_in;
}

Checked<void> OperatorRules::dereference(Expr* e) const {
  const TypeId operand = e->a->type;
  if (types_.is_string(operand)) {  // its first character
    e->type = types_.named("char");
    e->is_lvalue = has_writable_text(*e->a);
    return {};
  }
  const TypeId pointer = types_.decay(operand);
  if (!types_.is_pointer(pointer)) {
    return complain("D_DEREF_NONPTR", e->at, "cannot dereference non-pointer type");
  }
  e->type = types_.pointed(pointer);
  if (types_.is_void(e->type)) {
    return complain("D_DEREF_VOID", e->at, "cannot dereference pointer to void");
  }
  if (types_.kind(e->type) == TypeKind::Function) {
    return complain("D_DEREF_FUNC", e->at, "cannot dereference pointer to function");
  }
  e->is_lvalue = true;
  return {};
}

Checked<void> OperatorRules::type_unary(Expr* e) const {
  if (e->op == Op::Deref) return dereference(e);
  const TypeId operand = e->a->type;
  if (e->op == Op::Not) {
    if (!types_.is_scalar(operand) || types_.is_string(operand)) {
      return complain("D_OP_SCALAR", e->at, "operator ! requires an operand of scalar type");
    }
    e->type = types_.int32;
  } else {
    if (!types_.is_integer(operand)) {
      const bool whole = e->op == Op::BitNot;
      return complain(whole ? "D_OP_INT" : "D_OP_ARITH", e->at,
                      fmt::format("operator {} requires an operand of {} type", op_text(e->op),
                                  whole ? "integral" : "arithmetic"));
    }
    e->type = types_.arithmetic(operand);
  }
  return fold(types_, e);
}

/// ++ and --.
Checked<void> OperatorRules::type_step(Expr* e) const {
  const Expr* const a = e->a;
  if (!types_.is_scalar(a->type)) {
    return complain("D_OP_SCALAR", e->at,
                    fmt::format("operator {} requires an operand of scalar type", op_text(e->op)));
  }
  if (types_.is_pointer(a->type)) {
    const TypeId pointed = types_.referent(a->type);
    if (types_.is_void(pointed) || types_.is_function(pointed)) {
      return complain("D_OP_VFPTR", e->at,
                      fmt::format("operator {} cannot be applied to a pointer to {}",
                                  op_text(e->op), types_.name(pointed)));
    }
    if (types_.measure(pointed) == 0) {
      return complain(
          "D_OP_INCOMPLETE", e->at,
          fmt::format("operator {} cannot step over {}", op_text(e->op), types_.name(a->type)));
    }
  }
  e->type = a->type;
  return {};
}

/// 0 or NULL, written out.
bool OperatorRules::is_null(const Expr& e) const {
  return e.constant == 0U && !e.late && (types_.is_integer(e.type) || types_.is_pointer(e.type));
}

Checked<void> OperatorRules::incompatible(const Expr* e) const {
  return complain("D_OP_INCOMPAT", e->at,
                  fmt::format("operands have incompatible types: \"{}\" {} \"{}\"",
                              types_.name(e->a->type), op_text(e->op), types_.name(e->b->type)));
}

Checked<void> OperatorRules::additive(Expr* e) const {
  const TypeId a = types_.decay(e->a->type), b = types_.decay(e->b->type);
  const bool left = types_.is_pointer(a), right = types_.is_pointer(b);
  if (left && right && e->op == Op::Sub) {
    if (!types_.same(types_.referent(a), types_.referent(b))) return incompatible(e);
    e->type = types_.int64;
  } else if (left && types_.is_integer(b)) {
    e->type = a;
  } else if (right && types_.is_integer(a) && e->op == Op::Add) {
    e->type = b;
  } else {
    return incompatible(e);
  }
  const TypeId pointed = types_.referent(left ? a : b);
  if (types_.is_void(pointed)) return incompatible(e);
  if (types_.measure(pointed) == 0) {
    return complain("D_OP_INCOMPLETE", e->at,
                    fmt::format("operator {} cannot be applied to a pointer to {}", op_text(e->op),
                                types_.name(pointed)));
  }
  return {};
}

Checked<void> OperatorRules::comparison(Expr* e) const {
  const TypeId a = e->a->type, b = e->b->type;
  const TypeId x = types_.decay(a), y = types_.decay(b);
  e->type = types_.int32;
  const bool strings = (types_.is_string(a) && types_.is_string_like(b)) ||
                       (types_.is_string(b) && types_.is_string_like(a));
  const bool null_string =
      (types_.is_string(a) && is_null(*e->b)) || (types_.is_string(b) && is_null(*e->a));
  if (null_string) return {};
  if (strings || (types_.is_integer(x) && types_.is_integer(y))) return fold(types_, e);
  const bool null_pointer =
      (types_.is_pointer(x) && is_null(*e->b)) || (types_.is_pointer(y) && is_null(*e->a));
  if (null_pointer || (types_.is_pointer(x) && types_.is_pointer(y) && types_.pointers_agree(x, y)))
    return {};
  return incompatible(e);
}

Checked<void> OperatorRules::type_binary(Expr* e) const {
  const TypeId a = e->a->type, b = e->b->type;
  const bool integers = types_.is_integer(a) && types_.is_integer(b);
  const auto needs = [&](std::string_view tag, std::string_view what) {
    return complain(tag, e->at,
                    fmt::format("operator {} requires operands of {} type", op_text(e->op), what));
  };
  switch (e->op) {
    case Op::Add:
    case Op::Sub:
      if (!integers) return additive(e);
      [[fallthrough]];
    case Op::Mul:
    case Op::Div:
      if (!integers) return needs("D_OP_ARITH", "arithmetic");
      e->type = types_.arithmetic(a, b);
      return fold(types_, e);
    case Op::Mod:
    case Op::BitAnd:
    case Op::BitXor:
    case Op::BitOr:
      if (!integers) return needs("D_OP_INT", "integral");
      e->type = types_.arithmetic(a, b);
      return fold(types_, e);
    case Op::Shl:
    case Op::Shr:
      if (!integers) return needs("D_OP_INT", "integral");
      e->type = types_.arithmetic(a);
      return fold(types_, e);
    case Op::And:
    case Op::Xor:
    case Op::Or:
      if (!types_.is_scalar(a) || !types_.is_scalar(b)) {
        return needs("D_OP_SCALAR", "scalar");
      }
      e->type = types_.int32;
      return fold(types_, e);
    default: return comparison(e);
  }
}

Checked<void> OperatorRules::check_assignable(const Expr& e, TypeId to, const Expr& from) const {
  const TypeId source = types_.decay(from.type);
  if (types_.is_integer(to) && types_.is_integer(source)) return {};
  const bool zero = is_null(from);
  if (types_.is_string(to) && types_.is_string_like(from.type)) return {};
  if (types_.is_pointer(to)) {
    if (zero || (types_.is_pointer(source) && types_.pointers_agree(to, source))) return {};
    if (types_.is_string(from.type) && types_.is_string_like(to)) return {};  // its address
  }
  if (types_.by_reference(to) && types_.same(to, from.type)) return {};
  if (types_.by_reference(to) && zero && e.kind == ExprKind::Assign && e.a->identifier != nullptr) {
    return {};  // frees the variable
  }
  return complain("D_OP_INCOMPAT", e.at,
                  fmt::format("operands have incompatible types: \"{}\" = \"{}\"", types_.name(to),
                              types_.name(from.type)));
}

/// a op= b.
Checked<void> OperatorRules::check_compound(const Expr* e) const {
  const TypeId to = e->a->type, from = e->b->type;
  const bool steps = e->op == Op::Add || e->op == Op::Sub;
  const bool pointer = types_.is_pointer(to) && steps && types_.is_integer(from);
  if (!pointer && (!types_.is_integer(to) || !types_.is_integer(from))) {
    if (steps && types_.is_integer(to) && types_.is_pointer(types_.decay(from))) {
      return complain("D_OP_VFPTR", e->at,
                      fmt::format("operator {}= requires left-hand scalar operand of known size",
                                  op_text(e->op)));
    }
    if (steps) {
      return complain("D_OP_INCOMPAT", e->at,
                      fmt::format("operands have incompatible types: \"{}\" {}= \"{}\"",
                                  types_.name(to), op_text(e->op), types_.name(from)));
    }
    const bool arithmetic = e->op == Op::Mul || e->op == Op::Div;
    return complain(arithmetic ? "D_OP_ARITH" : "D_OP_INT", e->at,
                    fmt::format("operator {}= requires operands of {} type", op_text(e->op),
                                arithmetic ? "arithmetic" : "integral"));
  }
  if (pointer && types_.measure(types_.referent(to)) == 0) {
    return complain(
        types_.is_void(types_.referent(to)) ? "D_OP_VFPTR" : "D_OP_INCOMPLETE", e->at,
        fmt::format("operator {}= cannot step over {}", op_text(e->op), types_.name(to)));
  }
  if ((e->op == Op::Div || e->op == Op::Mod) && e->b->constant == 0U) {
    return complain("D_DIV_ZERO", e->at, "expression contains division by zero");
  }
  return {};
}

/// ?: whose condition is not known now.
Checked<void> OperatorRules::type_conditional(Expr* e) const {
  const TypeId b = types_.decay(e->b->type), c = types_.decay(e->c->type);
  if (types_.is_integer(b) && types_.is_integer(c)) {
    e->type = types_.arithmetic(b, c);
  } else if (types_.is_string_like(e->b->type) && types_.is_string_like(e->c->type)) {
    const bool pointers = !types_.is_string(e->b->type) && !types_.is_string(e->c->type);
    e->type = pointers ? b : types_.string;
  } else if (types_.is_pointer(b) &&
             (is_null(*e->c) || (types_.is_pointer(c) && types_.pointers_agree(b, c)))) {
    e->type = b;
  } else if (types_.is_pointer(c) && is_null(*e->b)) {
    e->type = c;
  } else if ((types_.is_string(b) && is_null(*e->c)) || (types_.is_string(c) && is_null(*e->b))) {
    e->type = types_.string;
  } else if (types_.by_reference(b) && types_.same(b, c)) {
    e->type = b;
  } else if (types_.is_void(b) && types_.is_void(c)) {
    return complain("D_OP_ACT", e->at, "action cannot be used in a conditional context");
  } else {
    return complain("D_OP_INCOMPAT", e->at,
                    fmt::format("operator ?: operands have incompatible types: \"{}\" and \"{}\"",
                                types_.name(e->b->type), types_.name(e->c->type)));
  }
  return {};
}

Checked<void> OperatorRules::check_bounds(const Expr* e) const {
  const Expr* const base = e->a;
  const Expr& position = *e->list[0];
  // A string of D's has strsize characters.
  const std::uint64_t count = types_.is_array(base->type)    ? types_.at(base->type).count
                              : types_.is_string(base->type) ? types_.measure(base->type)
                                                             : 0;
  const bool arrow = base->kind == ExprKind::Arrow;
  const bool is_member = arrow || base->kind == ExprKind::Member;
  // C's old custom: the last array of a structure goes on as far as there is room.
  const bool open_end =
      is_member && types_.is_array(base->type) &&
      types_.is_last(arrow ? types_.referent(types_.decay(base->a->type)) : base->a->type,
                     base->member);
  const bool bounded = count > 0 && !open_end;
  if (bounded && position.constant && *position.constant >= count) {
    return complain("D_ARR_BOUNDS", e->at,
                    fmt::format("index outside array bounds: {}, max is {}",
                                static_cast<std::int64_t>(*position.constant), count));
  }
  return {};
}

/// An array's element, or a string's character: e->a is not an associative array.
Checked<void> OperatorRules::type_element(Expr* e) const {
  const Expr* const base = e->a;
  if (types_.is_string(base->type) && types_.is_integer(e->list[0]->type)) {  // one character
    e->type = types_.named("char");
    e->is_lvalue = has_writable_text(*base);
    return check_bounds(e);
  }
  const TypeId pointer = types_.decay(base->type);
  if (!types_.is_pointer(pointer)) {
    return complain("D_DEREF_NONPTR", e->at, "cannot dereference non-pointer type");
  }
  if (!types_.is_integer(e->list[0]->type)) {
    return complain("D_OP_INCOMPAT", e->at,
                    fmt::format("operator [ ] requires an integer index, not {}",
                                types_.name(e->list[0]->type)));
  }
  TRY(check_bounds(e));
  e->type = types_.pointed(pointer);
  if (types_.is_void(e->type) || types_.is_function(e->type)) {
    return complain("D_OP_INCOMPAT", e->at,  // as p + n
                    "operator [ ] cannot be applied to a pointer to void or a function");
  }
  if (types_.measure(e->type) == 0) {
    return complain(
        "D_OP_INCOMPLETE", e->at,
        fmt::format("operator [ ] cannot be applied to elements of type {}", types_.name(e->type)));
  }
  e->is_lvalue = true;
  return {};
}

}  // namespace ringside::d
