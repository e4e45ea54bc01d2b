#include "dif/d/resolve/rewriter.h"

#include <fmt/format.h>

#include <utility>

#include "dif/d/resolve/constants.h"
#include "dif/d/resolve/purity.h"
#include "dif/d/syntax/ast.h"

namespace ringside::d {

Expr* Rewriter::converted(Expr* value, TypeId type) {
  Expr* cast = make_node(arena_, ExprKind::Cast, value->at, value);
  cast->type = type;
  cast->translation = value->translation;
  return cast;
}

Expr* Rewriter::placeholder(TypeId type, const Location& at) {
  Expr* nothing = make_node(arena_, ExprKind::Integer, at);
  nothing->type = types_.uint64;
  Expr* made = converted(nothing, type);
  made->is_lvalue = types_.by_reference(type);
  return made;
}

Checked<void> Rewriter::become(Expr* e, Expr* value, TypeId type) {
  TRY(rules_.assignable(*e, type, *value));
  e->kind = ExprKind::Cast;
  e->type_name = nullptr;
  e->list.clear();
  e->identifier = nullptr;
  e->member = {};
  e->is_lvalue = false;
  e->a = value;
  e->type = type;
  e->translation = value->translation;
  return fold(types_, e);
}

Checked<Identifier*> Rewriter::hidden_variable(std::string_view what, TypeId type,
                                               const Location& at) {
  const std::string name = fmt::format("%{}_{}", what, ++hidden_variables_);
  Identifier* const identifier = TRY(identifiers_.add_variable(Scope::Clause, name, at));
  identifier->type = type;
  return identifier;
}

Expr* Rewriter::clause_local(const Identifier& identifier, const Location& at) {
  return make_clause_local(arena_, arena_.make(std::string(identifier.name)), at);
}

Checked<Rewriter::Once> Rewriter::evaluate_once(Expr* e) {
  if (is_pure(*e) || e->translation != nullptr) return Once{nullptr, e};
  Identifier* const identifier = TRY(hidden_variable("kept", types_.decay(e->type), e->at));
  Expr* const target = clause_local(*identifier, e->at);
  Expr* const assignment = make_node(arena_, ExprKind::Assign, e->at, target, e);
  TRY(walker_.resolve(assignment));
  return Once{assignment, arena_.make(Expr(*target))};
}

Checked<Expr*> Rewriter::try_out(const Expr& value, const Location& at, const Bindings& bindings,
                                 std::string_view what) {
  Expr* const copy = copier_.clone(value, nullptr, bindings);
  if (copy == nullptr) return complain("D_UNKNOWN", at, fmt::format("{} grows too large", what));
  const dif::Attributes before = stability_.save();
  auto resolved = walker_.resolve_dynamic(copy);
  stability_.restore(before);
  if (!resolved) return tl::make_unexpected(std::move(resolved.error()));
  return copy;
}

}  // namespace ringside::d
