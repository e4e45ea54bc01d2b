// In this file: inlines, and how a resolved expression is replaced by another one: converted to a
// type, or kept in a hidden variable because it is needed twice.
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "dif/d/resolve/resolve.h"

namespace ringside::d {

Expr* Resolver::make_converted(Expr* value, TypeId type) {
  Expr* cast = make_node(arena_, ExprKind::Cast, value->at, value);
  cast->type = type;
  cast->translation = value->translation;
  return cast;
}

Expr* Resolver::make_placeholder(TypeId type, const Location& at) {
  Expr* nothing = make_node(arena_, ExprKind::Integer, at);
  nothing->type = types_.uint64;
  Expr* made = make_converted(nothing, type);
  made->is_lvalue = types_.by_reference(type);
  return made;
}

Checked<void> Resolver::replace(Expr* e, Expr* value, TypeId type) {
  TRY(rules_.check_assignable(*e, type, *value));
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

Checked<Identifier*> Resolver::add_hidden_variable(std::string_view what, TypeId type,
                                                   const Location& at) {
  const std::string name = fmt::format("%{}_{}", what, ++hidden_variables_);
  Identifier* const identifier = TRY(identifiers_.add_variable(Scope::Clause, name, at));
  identifier->type = type;
  return identifier;
}

Expr* Resolver::make_clause_local_of(const Identifier& identifier, const Location& at) {
  return make_clause_local(arena_, arena_.make(std::string(identifier.name)), at);
}

Checked<Resolver::Once> Resolver::evaluate_once(Expr* e) {
  if (is_pure(*e) || e->translation != nullptr) return Once{nullptr, e};
  const TypeId type = types_.graph().without_userland(types_.decay(e->type));
  Identifier* const identifier = TRY(add_hidden_variable("kept", type, e->at));
  Expr* const target = make_clause_local_of(*identifier, e->at);
  Expr* const assignment = make_node(arena_, ExprKind::Assign, e->at, target, e);
  TRY(resolve(assignment));
  return Once{assignment, arena_.make(Expr(*target))};
}

Checked<Expr*> Resolver::try_out(const Expr& value, const Location& at, const Bindings& bindings,
                                 std::string_view what) {
  Expr* const copy = copier_.clone(value, nullptr, bindings);
  if (copy == nullptr) return complain("D_UNKNOWN", at, fmt::format("{} grows too large", what));
  const dif::Attributes before = stability_.save();
  auto resolved = resolve_dynamic(copy);
  stability_.restore(before);
  if (!resolved) return tl::make_unexpected(std::move(resolved.error()));
  return copy;
}

/// An inline with keys: their types and names.
Checked<void> Resolver::take_inline_parameters(Identifier& identifier,
                                               const Declarator& declarator) {
  identifier.keys = TRY(type_resolver_.resolve_key_types(declarator));
  for (const Declaration* key : *declarator.derivations.front().parameters) {
    const Text parameter = key->declarators.front()->name;
    if (parameter == nullptr) {
      return complain("D_DECL_PROTO_NAME", key->at,
                      fmt::format("a parameter of inline {}[ ] has no name", identifier.name));
    }
    identifier.parameters.push_back(*parameter);
  }
  return {};
}

Checked<void> Resolver::define_inline(const InlineNode& node) {
  const Declarator& declarator = *node.declarator;
  const TypeId base = TRY(type_resolver_.resolve_specifiers(*node.spec));
  if (node.spec->storage != Storage::None) {
    return complain("D_DECL_BADCLASS", node.at, "an inline may not have a storage class");
  }
  const std::string& name = *declarator.name;
  Identifier identifier;
  identifier.kind = Identifier::Kind::Inline;
  identifier.name = name;
  identifier.type = TRY(type_resolver_.apply_declarator(base, declarator, true));
  identifier.value = node.value;
  identifier.is_associative = !declarator.derivations.empty() &&
                              declarator.derivations.front().kind == Derivation::Kind::Keys;
  if (identifier.is_associative) TRY(take_inline_parameters(identifier, declarator));
  if (types_.is_array(identifier.type)) {
    return complain("D_DECL_ARRNULL", declarator.at,
                    fmt::format("inline declaration cannot be of scalar array type: {}", name));
  }
  if (types_.is_void(identifier.type) || types_.is_function(identifier.type)) {
    return complain("D_DECL_VOIDOBJ", declarator.at,
                    fmt::format("cannot have {} inline: {}", types_.name(identifier.type), name));
  }
  // A guest without some field keeps its own, empty meaning of a library's name: that is not known
  // before somebody uses it.
  const bool from_library = node.at.file != 0;
  if (identifiers_.find_identifier(Scope::Global, name) != nullptr || identifiers_.is_of_d(name) ||
      type_resolver_.find_enumerator(name)) {
    if (from_library) return {};
    return complain("D_DECL_IDRED", declarator.at, fmt::format("identifier redeclared: {}", name));
  }
  if (!from_library) TRY(check_inline(node, identifier));
  identifiers_.add_inline(std::move(identifier));
  return {};
}

/// An inline that is never used must be right all the same.
Checked<void> Resolver::check_inline(const InlineNode& node, Identifier& identifier) {
  Bindings bindings;
  for (std::size_t i = 0; i < identifier.parameters.size(); ++i) {
    bindings.emplace(identifier.parameters[i], make_placeholder(identifier.keys[i], node.at));
  }
  Expr* value = TRY(try_out(*node.value, node.at, bindings, "inline " + identifier.name));
  TRY(rules_.check_assignable(*value, identifier.type, *value));
  if (!value->constant || !types_.is_integer(value->type) || !types_.is_integer(identifier.type)) {
    return {};
  }
  if (value->late) return {};
  // A number from now on: an expression that names it need not go through all that this one names.
  Expr number;
  number.at = value->at;
  number.type = identifier.type;
  number.constant = types_.cast(value->type, identifier.type, *value->constant);
  identifier.value = arena_.make(std::move(number));
  return {};
}

Checked<void> Resolver::expand_inline(Expr* e, const Identifier& identifier) {
  Expr* value = TRY(copier_.copy(*identifier.value, e->at, {}, "inline " + identifier.name));
  TRY(resolve_dynamic(value));
  return replace(e, value, identifier.type);
}

Checked<void> Resolver::expand_inline_with_keys(Expr* e, const Identifier& identifier) {
  if (e->list.size() != identifier.keys.size()) {
    return complain(
        "D_PROTO_LEN", e->at,
        fmt::format("{}[ ] prototype mismatch: {} key{} passed, {} expected", identifier.name,
                    e->list.size(), e->list.size() == 1 ? "" : "s", identifier.keys.size()));
  }
  Bindings bindings;
  std::vector<Expr*> prologues;
  for (std::size_t i = 0; i < e->list.size(); ++i) {
    Expr* argument = e->list[i];
    TRY(resolve(argument));
    if (!rules_.check_assignable(*e, identifier.keys[i], *argument)) {
      return complain("D_PROTO_ARG", argument->at,
                      fmt::format("{}[ ] key #{} is incompatible with prototype: prototype: {}, "
                                  "argument: {}",
                                  identifier.name, i + 1, types_.name(identifier.keys[i]),
                                  types_.name(argument->type)));
    }
    const auto [prologue, again] = TRY(evaluate_once(argument));
    if (prologue != nullptr) prologues.push_back(prologue);
    bindings.emplace(identifier.parameters[i], make_converted(again, identifier.keys[i]));
  }
  Expr* value = TRY(copier_.copy(*identifier.value, e->at, bindings, "inline " + identifier.name));
  for (Expr* prologue : prologues) value = make_comma(arena_, e->at, prologue, value);
  TRY(resolve_dynamic(value));
  return replace(e, value, identifier.type);
}

}  // namespace ringside::d
