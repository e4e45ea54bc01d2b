// Operators: their types and what they take. In this file, top to bottom: unary operators, binary
// operators, assignment, ?: . What constants are worth is resolve_constants.cc's.
#include <fmt/format.h>

#include <algorithm>

#include "dif/d/resolve/resolve.h"
#include "dif/d/syntax/nodes.h"

namespace ringside::d {

std::string_view op_text(Op op) {
  switch (op) {
    case Op::Mul: return "*";
    case Op::Div: return "/";
    case Op::Mod: return "%";
    case Op::Add: return "+";
    case Op::Sub: return "-";
    case Op::Shl: return "<<";
    case Op::Shr: return ">>";
    case Op::Lt: return "<";
    case Op::Le: return "<=";
    case Op::Gt: return ">";
    case Op::Ge: return ">=";
    case Op::Eq: return "==";
    case Op::Ne: return "!=";
    case Op::BitAnd: return "&";
    case Op::BitXor: return "^";
    case Op::BitOr: return "|";
    case Op::And: return "&&";
    case Op::Xor: return "^^";
    case Op::Or: return "||";
    case Op::Plus: return "+";
    case Op::Neg: return "-";
    case Op::BitNot: return "~";
    case Op::Not: return "!";
    case Op::Deref: return "*";
    case Op::AddressOf: return "&";
    case Op::PreInc:
    case Op::PostInc: return "++";
    case Op::PreDec:
    case Op::PostDec: return "--";
  }
  return "?";
}

namespace {

/// Where a name that is written to lives.
Scope variable_scope(const Expr& named) {
  return named.kind == ExprKind::Name ? Scope::Global : named.scope;
}

}  // namespace

Checked<void> Resolver::address_of(Expr* e) {
  if (e->a->kind == ExprKind::KernelSymbol) {
    TRY(kernel_symbol(e->a, true));
  } else {
    TRY(resolve(e->a));
  }
  const Expr& a = *e->a;
  if (a.symbol != nullptr || a.kind == ExprKind::Aggregation) {
    return complain("D_ADDROF_VAR", e->at, "cannot take the address of a D variable");
  }
  if (!a.is_lvalue) {
    return complain("D_ADDROF_LVAL", e->at, "operator & operand must be an lvalue");
  }
  if ((a.kind == ExprKind::Member || a.kind == ExprKind::Arrow) && a.member.bit_width != 0) {
    return complain("D_ADDROF_BITFIELD", e->at, "cannot take the address of a bit-field");
  }
  e->type = types_.graph().pointer_to(a.type);
  return {};
}

/// Whether the string `text` is a variable's or a member's, whose characters may be written.
bool Resolver::has_writable_text(const Expr& text) {
  if (text.kind == ExprKind::KernelSymbol) return false;
  const bool built_in = text.symbol != nullptr && text.symbol->kind != Symbol::Kind::Variable;
  return text.is_lvalue && !built_in;
}

Checked<void> Resolver::writable(const Expr& e, const Expr& target) {
  if (target.kind == ExprKind::KernelSymbol) {
    return complain("D_OP_WRITE", e.at,
                    "operator requires a writable variable: kernel variables are read-only");
  }
  if (target.symbol != nullptr && target.symbol->kind != Symbol::Kind::Variable) {
    return complain("D_OP_WRITE", e.at,
                    fmt::format("built-in variable {} may not be written", target.symbol->name));
  }
  const std::string_view op = e.kind == ExprKind::Assign ? "=" : op_text(e.op);
  const bool element =
      target.kind == ExprKind::Index || (target.kind == ExprKind::Unary && target.op == Op::Deref);
  if (!target.is_lvalue && element && types_.is_string(target.a->type)) {
    return complain("D_OP_WRITE", e.at,
                    fmt::format("operator {} can only be applied to characters of a variable", op));
  }
  if (!target.is_lvalue) {
    return complain("D_OP_LVAL", e.at,
                    fmt::format("operator {} requires modifiable lvalue as an operand", op));
  }
  return {};
}

/// The name that `target` writes to (its own, or its array's) where nothing has that name yet.
const Expr* Resolver::undeclared(const Expr& target) {
  const Expr& named = target.kind == ExprKind::Index ? *target.a : target;
  if (named.kind != ExprKind::Name && named.kind != ExprKind::Scoped) return nullptr;
  const std::string& text = *named.text;
  if (find(variable_scope(named), text) != nullptr) return nullptr;
  const bool taken = is_of_d(text) || enumerators_.contains(text) || text == "args" ||
                     text == "uregs" || text == "NULL";
  return named.kind == ExprKind::Name && taken ? nullptr : &named;
}

bool Resolver::names_unknown(const Expr& e) {
  if (undeclared(e) != nullptr) return true;
  const auto unknown = [this](const Expr* part) { return part && names_unknown(*part); };
  return unknown(e.a) || unknown(e.b) || unknown(e.c) || std::ranges::any_of(e.list, unknown);
}

void Resolver::define(Expr* e) {
  for (Expr* part : {e->a, e->b, e->c}) {
    if (part != nullptr) define(part);
  }
  for (Expr* part : e->list) define(part);
  const bool steps = e->kind == ExprKind::Unary && e->op >= Op::PreInc;
  if ((!steps && e->kind != ExprKind::Assign) || undeclared(*e->a) == nullptr) return;
  static_cast<void>(resolve(e));
  const Expr* left = undeclared(*e->a);
  if (left != nullptr && left->kind == ExprKind::Name) first_assigned_.emplace_back(*left->text);
}

/// Declares what undeclared() has found in `target`.
Checked<void> Resolver::declare_written(const Expr& target, TypeId type, const Location& at) {
  const bool element = target.kind == ExprKind::Index;
  const Expr& named = element ? *target.a : target;
  const Scope scope = variable_scope(named);
  if (element && scope == Scope::Clause) {
    return complain(
        "D_ARR_LOCAL", at,
        fmt::format("cannot declare associative array as local variable: this->{}", *named.text));
  }
  Symbol* symbol = TRY(add_variable(scope, *named.text, named.at));
  symbol->type = type;
  symbol->is_associative = element;
  return {};
}

/// a[i++] += 1 reads and writes one element: keys that cannot be evaluated twice are kept in
/// hidden variables first, and `e` becomes (kept = i++, a[kept] += 1).
Checked<void> Resolver::keep_keys(Expr* e, Expr* target) {
  if (target->symbol == nullptr || !target->symbol->is_associative) return {};
  Expr* prologue = nullptr;
  for (Expr*& key : target->list) {
    const auto [first, again] = TRY(evaluate_once(key));
    if (first == nullptr) continue;
    key = again;
    TRY(resolve(key));
    prologue = prologue == nullptr ? first : make_comma(arena_, e->at, prologue, first);
  }
  if (prologue == nullptr) return {};
  *e = *make_comma(arena_, e->at, prologue, arena_.make(Expr(*e)));
  return {};
}

Checked<void> Resolver::step(Expr* e) {
  Expr* a = e->a;
  // x++ declares x, as x = x + 1 would on a variable that reads as 0.
  if (undeclared(*a) != nullptr) TRY(declare_written(*a, types_.int64, a->at));
  TRY(resolve(a, "D_OP_DYN"));
  TRY(writable(*e, *a));
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
    if (types_.size(pointed) == 0) {
      return complain(
          "D_OP_INCOMPLETE", e->at,
          fmt::format("operator {} cannot step over {}", op_text(e->op), types_.name(a->type)));
    }
  }
  e->type = a->type;
  return keep_keys(e, a);
}

Checked<void> Resolver::unary(Expr* e) {
  if (e->op == Op::AddressOf) return address_of(e);
  if (e->op == Op::PreInc || e->op == Op::PreDec || e->op == Op::PostInc || e->op == Op::PostDec) {
    return step(e);
  }
  TRY(resolve(e->a, "D_OP_DYN"));
  const TypeId operand = e->a->type;
  if (e->op == Op::Deref) {
    if (types_.is_string(operand)) {  // its first character
      e->type = types_.named("char");
      e->is_lvalue = has_writable_text(*e->a);
      return {};
    }
    const TypeId pointer = types_.decay(operand);
    if (!types_.is_pointer(pointer)) {
      return complain("D_DEREF_NONPTR", e->at, "cannot dereference non-pointer type");
    }
    e->type = types_.referent(pointer);
    if (types_.is_void(e->type)) {
      return complain("D_DEREF_VOID", e->at, "cannot dereference pointer to void");
    }
    if (types_.kind(e->type) == TypeKind::Function) {
      return complain("D_DEREF_FUNC", e->at, "cannot dereference pointer to function");
    }
    e->is_lvalue = true;
    return {};
  }
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
  return fold(e);
}

Checked<void> Resolver::incompatible(const Expr* e) const {
  return complain("D_OP_INCOMPAT", e->at,
                  fmt::format("operands have incompatible types: \"{}\" {} \"{}\"",
                              types_.name(e->a->type), op_text(e->op), types_.name(e->b->type)));
}

Checked<void> Resolver::additive(Expr* e) {
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
  if (types_.size(pointed) == 0) {
    return complain("D_OP_INCOMPLETE", e->at,
                    fmt::format("operator {} cannot be applied to a pointer to {}", op_text(e->op),
                                types_.name(pointed)));
  }
  return {};
}

/// 0 or NULL, written out.
bool Resolver::is_null(const Expr& e) const {
  return e.constant == 0U && (types_.is_integer(e.type) || types_.is_pointer(e.type));
}

Checked<void> Resolver::comparison(Expr* e) {
  const TypeId a = e->a->type, b = e->b->type;
  const TypeId x = types_.decay(a), y = types_.decay(b);
  e->type = types_.int32;
  const bool strings = (types_.is_string(a) && types_.is_string_like(b)) ||
                       (types_.is_string(b) && types_.is_string_like(a));
  const bool null_string =
      (types_.is_string(a) && is_null(*e->b)) || (types_.is_string(b) && is_null(*e->a));
  if (null_string) return {};
  if (strings || (types_.is_integer(x) && types_.is_integer(y))) return fold(e);
  const bool null_pointer =
      (types_.is_pointer(x) && is_null(*e->b)) || (types_.is_pointer(y) && is_null(*e->a));
  if (null_pointer || (types_.is_pointer(x) && types_.is_pointer(y) && types_.pointers_agree(x, y)))
    return {};
  return incompatible(e);
}

Checked<void> Resolver::binary(Expr* e) {
  TRY(resolve(e->a, "D_OP_DYN"));
  TRY(resolve(e->b, "D_OP_DYN"));
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
      return fold(e);
    case Op::Mod:
    case Op::BitAnd:
    case Op::BitXor:
    case Op::BitOr:
      if (!integers) return needs("D_OP_INT", "integral");
      e->type = types_.arithmetic(a, b);
      return fold(e);
    case Op::Shl:
    case Op::Shr:
      if (!integers) return needs("D_OP_INT", "integral");
      e->type = types_.arithmetic(a);
      return fold(e);
    case Op::And:
    case Op::Xor:
    case Op::Or:
      if (!types_.is_scalar(a) || !types_.is_scalar(b)) {
        return needs("D_OP_SCALAR", "scalar");
      }
      e->type = types_.int32;
      return fold(e);
    default: return comparison(e);
  }
}

Checked<void> Resolver::check_assignable(const Expr& e, TypeId to, const Expr& from) {
  const TypeId source = types_.decay(from.type);
  if (types_.is_integer(to) && types_.is_integer(source)) return {};
  const bool zero = is_null(from);
  if (types_.is_string(to) && types_.is_string_like(from.type)) return {};
  if (types_.is_pointer(to)) {
    if (zero || (types_.is_pointer(source) && types_.pointers_agree(to, source))) return {};
    if (types_.is_string(from.type) && types_.is_string_like(to)) return {};  // its address
  }
  if (types_.by_reference(to) && types_.same(to, from.type)) return {};
  if (types_.by_reference(to) && zero && e.kind == ExprKind::Assign && e.a->symbol != nullptr) {
    return {};  // frees the variable
  }
  return complain("D_OP_INCOMPAT", e.at,
                  fmt::format("operands have incompatible types: \"{}\" = \"{}\"", types_.name(to),
                              types_.name(from.type)));
}

/// The first assignment to a name declares it with the type of what is assigned.
Checked<void> Resolver::assign_new(Expr* e) {
  const Expr* named = undeclared(*e->a);
  for (Expr* key : e->a->list) TRY(resolve(key, "D_OP_DYN"));  // a[i++] = i declares i
  if (named->kind == ExprKind::Name) first_assigned_.emplace_back(*named->text);
  const Checked<void> value = resolve(e->b, "D_OP_DYN");
  if (named->kind == ExprKind::Name) first_assigned_.pop_back();
  TRY(value);
  named = undeclared(*e->a);
  if (named == nullptr) return {};  // its own value declared it
  if (e->compound) {
    return complain("D_VAR_UNDEF", named->at,
                    fmt::format("{} has not yet been declared or assigned", *named->text));
  }
  if (!types_.value_type(e->b->type)) {
    return complain(
        "D_OP_INCOMPAT", e->at,
        fmt::format("cannot assign a value of type {} to a variable", types_.name(e->b->type)));
  }
  return declare_written(*e->a, e->b->type, e->at);
}

Checked<void> Resolver::assign(Expr* e) {
  Expr* target = e->a;
  if (undeclared(*target) != nullptr) TRY(assign_new(e));
  TRY(resolve(target, "D_OP_DYN"));
  TRY(writable(*e, *target));
  TRY(resolve(e->b, "D_OP_DYN"));
  e->type = target->type;
  if (e->compound) return compound(e);
  if (types_.is_array(target->type) || types_.is_function(target->type)) {
    return complain("D_OP_ARRFUN", e->at,
                    fmt::format("operator = may not be applied to an operand of type {}",
                                types_.name(target->type)));
  }
  return check_assignable(*e, target->type, *e->b);
}

/// a op= b, with both resolved.
Checked<void> Resolver::compound(Expr* e) {
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
  if (pointer && types_.size(types_.referent(to)) == 0) {
    return complain(
        types_.is_void(types_.referent(to)) ? "D_OP_VFPTR" : "D_OP_INCOMPLETE", e->at,
        fmt::format("operator {}= cannot step over {}", op_text(e->op), types_.name(to)));
  }
  if ((e->op == Op::Div || e->op == Op::Mod) && e->b->constant == 0U) {
    return complain("D_DIV_ZERO", e->at, "expression contains division by zero");
  }
  return keep_keys(e, e->a);
}

Checked<void> Resolver::conditional(Expr* e) {
  TRY(condition(e->a));
  if (e->a->constant) {  // the other side need not mean anything
    const Expr taken = *e->a->constant != 0 ? *e->b : *e->c;
    *e = taken;
    return resolve_dynamic(e);
  }
  TRY(resolve(e->b));
  TRY(resolve(e->c));
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

}  // namespace ringside::d
