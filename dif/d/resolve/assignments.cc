// In this file: operators that write (=, the compound ones such as +=, ++ and --). D's variables
// are declared by their first assignment, so this code also declares new names.
#include <fmt/format.h>

#include <algorithm>

#include "dif/d/resolve/resolve.h"
#include "dif/d/syntax/print_tree.h"

namespace ringside::d {

namespace {

/// The scope of a name that is written to.
Scope variable_scope(const Expr& named) {
  return named.kind == ExprKind::Name ? Scope::Global : named.scope;
}

std::string_view name_of(dif::BuiltinType type) {
  switch (type) {
    case dif::BuiltinType::Signed32: return "int";
    case dif::BuiltinType::Signed64: return "int64_t";
    case dif::BuiltinType::Unsigned16: return "uint16_t";
    case dif::BuiltinType::Unsigned32: return "uint32_t";
    case dif::BuiltinType::Unsigned64: return "uint64_t";
    case dif::BuiltinType::String: return "string";
    case dif::BuiltinType::Pointer:
    case dif::BuiltinType::Void: break;
  }
  return {};
}

/// The type of an expression that nobody has resolved, where it is plain to see; else empty.
std::string_view plain_type(const Expr& e) {
  if (e.kind == ExprKind::Integer) return "int";
  if (e.kind == ExprKind::String) return "string";
  if (e.kind == ExprKind::Name) {
    const auto known = dif::find_builtin(*e.text);
    return known ? name_of(known->type) : std::string_view();
  }
  if (e.kind != ExprKind::Call) return {};
  const auto known = dif::find_subroutine(*e.text);
  return known ? name_of(known->result) : std::string_view();
}

}  // namespace

/// A chain of operators may be longer than calls may nest.
void Resolver::note_assignments(const Expr* whole) {
  std::vector<const Expr*> pending{whole};
  while (!pending.empty()) {
    const Expr* const e = pending.back();
    pending.pop_back();
    if (e == nullptr) continue;
    pending.insert(pending.end(), {e->a, e->b, e->c});
    pending.insert(pending.end(), e->list.begin(), e->list.end());
    const bool steps = e->kind == ExprKind::Unary && e->op >= Op::PreInc;
    if (!steps && e->kind != ExprKind::Assign) continue;
    const bool is_array = e->a->kind == ExprKind::Index;
    const Expr& named = is_array ? *e->a->a : *e->a;
    if (named.kind != ExprKind::Name && named.kind != ExprKind::Scoped) continue;
    // An array's declaration has its keys' types, too, which are not plain to see.
    const std::string_view type = is_array ? "" : steps ? "int64_t" : plain_type(*e->b);
    identifiers_.note_assigned(variable_scope(named), *named.text, named.at, type);
  }
}

void Resolver::note_assignments(const std::vector<Statement*>& body) {
  for (const Statement* statement : body) {
    for (const Expr* part : {statement->init, statement->expression, statement->step})
      note_assignments(part);
    note_assignments(statement->then_body);
    note_assignments(statement->else_body);
  }
}

/// The name that `target` writes to (its own, or its array's) where nothing has that name yet.
const Expr* Resolver::find_undeclared(const Expr& target) const {
  const Expr& named = target.kind == ExprKind::Index ? *target.a : target;
  if (named.kind != ExprKind::Name && named.kind != ExprKind::Scoped) return nullptr;
  const std::string& text = *named.text;
  if (identifiers_.find_identifier(variable_scope(named), text) != nullptr) return nullptr;
  const bool taken = identifiers_.is_of_d(text) || type_resolver_.find_enumerator(text) ||
                     text == "args" || text == "uregs" || text == "NULL";
  return named.kind == ExprKind::Name && taken ? nullptr : &named;
}

bool Resolver::names_unknown(const Expr& e) const {
  if (find_undeclared(e) != nullptr) return true;
  const auto unknown = [this](const Expr* part) { return part && names_unknown(*part); };
  return unknown(e.a) || unknown(e.b) || unknown(e.c) || std::ranges::any_of(e.list, unknown);
}

void Resolver::define_assigned(Expr* e, Which which) {
  for (Expr* part : {e->a, e->b, e->c}) {
    if (part != nullptr) define_assigned(part, which);
  }
  for (Expr* part : e->list) define_assigned(part, which);
  const bool steps = e->kind == ExprKind::Unary && e->op >= Op::PreInc;
  if ((!steps && e->kind != ExprKind::Assign) || find_undeclared(*e->a) == nullptr) return;
  const bool is_dynamic = e->a->kind == ExprKind::Index || e->a->kind == ExprKind::Scoped;
  if (which == Which::Dynamic && !is_dynamic) return;
  static_cast<void>(resolve(e));
  const Expr* left = find_undeclared(*e->a);
  if (left != nullptr && left->kind == ExprKind::Name) first_assigned_.emplace_back(*left->text);
}

bool Resolver::was_to_declare(std::string_view name) const {
  return std::ranges::find(first_assigned_, name) != first_assigned_.end();
}

/// Declares what find_undeclared() has found in `target`.
Checked<void> Resolver::declare_written(const Expr& target, TypeId type, const Location& at) {
  const bool element = target.kind == ExprKind::Index;
  const Expr& named = element ? *target.a : target;
  const Scope scope = variable_scope(named);
  if (element && scope == Scope::Clause) {
    return complain(
        "D_ARR_LOCAL", at,
        fmt::format("cannot declare associative array as local variable: this->{}", *named.text));
  }
  Identifier* identifier = TRY(identifiers_.add_variable(scope, *named.text, named.at));
  identifier->type = type;
  identifier->is_associative = element;
  return {};
}

/// The first assignment to a name declares it with the type of what is assigned.
Checked<void> Resolver::declare_assigned(Expr* e) {
  const Expr* named = find_undeclared(*e->a);
  for (Expr* key : e->a->list) TRY(resolve(key, "D_OP_DYN"));  // a[i++] = i declares i
  if (named->kind == ExprKind::Name) first_assigned_.emplace_back(*named->text);
  const Checked<void> value = resolve(e->b, "D_OP_DYN");
  if (named->kind == ExprKind::Name) first_assigned_.pop_back();
  TRY(value);
  named = find_undeclared(*e->a);
  if (named == nullptr) return {};  // its own value declared it
  if (e->compound) {
    return complain(
        "D_VAR_UNDEF", named->at,
        fmt::format("{} has not yet been declared or assigned", print_expression(*named)));
  }
  if (!types_.value_type(e->b->type)) {
    return complain(
        "D_OP_INCOMPAT", e->at,
        fmt::format("cannot assign a value of type {} to a variable", types_.name(e->b->type)));
  }
  return declare_written(*e->a, types_.graph().without_userland(e->b->type), e->at);
}

Checked<void> Resolver::check_writable(const Expr& e, const Expr& target) const {
  if (target.kind == ExprKind::KernelSymbol) {
    return complain("D_OP_WRITE", e.at,
                    "operator requires a writable variable: kernel variables are read-only");
  }
  if (target.identifier != nullptr && target.identifier->kind != Identifier::Kind::Variable) {
    return complain(
        "D_OP_WRITE", e.at,
        fmt::format("built-in variable {} may not be written", target.identifier->name));
  }
  if (target.identifier == nullptr && types_.is_userland(target.type)) {
    return complain("D_OP_WRITE", e.at, "the memory of a process is written by copyout( ) alone");
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

/// a[i++] += 1 reads and writes one element: keys that cannot be evaluated twice are kept in
/// hidden variables first, and `e` becomes (kept = i++, a[kept] += 1).
Checked<void> Resolver::evaluate_keys_once(Expr* e, Expr* target) {
  if (target->identifier == nullptr || !target->identifier->is_associative) return {};
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

Checked<void> Resolver::resolve_assignment(Expr* e) {
  Expr* target = e->a;
  if (find_undeclared(*target) != nullptr) TRY(declare_assigned(e));
  TRY(resolve(target, "D_OP_DYN"));
  TRY(check_writable(*e, *target));
  TRY(resolve(e->b, "D_OP_DYN"));
  e->type = target->type;
  if (e->compound) {
    TRY(rules_.check_compound(e));
    return evaluate_keys_once(e, target);
  }
  if (types_.is_array(target->type) || types_.is_function(target->type)) {
    return complain("D_OP_ARRFUN", e->at,
                    fmt::format("operator = may not be applied to an operand of type {}",
                                types_.name(target->type)));
  }
  return rules_.check_assignable(*e, target->type, *e->b);
}

Checked<void> Resolver::resolve_step(Expr* e) {
  Expr* a = e->a;
  // x++ declares x, as x = x + 1 would on a variable that reads as 0.
  if (find_undeclared(*a) != nullptr) TRY(declare_written(*a, types_.int64, a->at));
  TRY(resolve(a, "D_OP_DYN"));
  TRY(check_writable(*e, *a));
  TRY(rules_.type_step(e));
  return evaluate_keys_once(e, a);
}

}  // namespace ringside::d
