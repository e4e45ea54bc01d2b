#include "dif/d/resolve/inlines.h"

#include <fmt/format.h>

#include <vector>

#include "dif/d/syntax/ast.h"

namespace ringside::d {

/// An inline with keys: their types and names.
Checked<void> Inlines::take_parameters(Identifier& identifier, const Declarator& declarator) {
  identifier.keys = TRY(declared_.key_types(declarator));
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

Checked<void> Inlines::define(const InlineNode& node) {
  const Declarator& declarator = *node.declarator;
  const TypeId base = TRY(declared_.spec_type(*node.spec));
  if (node.spec->storage != Storage::None) {
    return complain("D_DECL_BADCLASS", node.at, "an inline may not have a storage class");
  }
  const std::string& name = *declarator.name;
  Identifier identifier;
  identifier.kind = Identifier::Kind::Inline;
  identifier.name = name;
  identifier.type = TRY(declared_.apply(base, declarator, true));
  identifier.value = node.value;
  identifier.is_associative = !declarator.derivations.empty() &&
                              declarator.derivations.front().kind == Derivation::Kind::Keys;
  if (identifier.is_associative) TRY(take_parameters(identifier, declarator));
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
  if (identifiers_.find(Scope::Global, name) != nullptr || identifiers_.is_of_d(name) ||
      declared_.find_enumerator(name)) {
    if (from_library) return {};
    return complain("D_DECL_IDRED", declarator.at, fmt::format("identifier redeclared: {}", name));
  }
  if (!from_library) TRY(check(node, identifier));
  identifiers_.add_inline(std::move(identifier));
  return {};
}

/// An inline that is never used must be right all the same.
Checked<void> Inlines::check(const InlineNode& node, Identifier& identifier) {
  Bindings bindings;
  for (std::size_t i = 0; i < identifier.parameters.size(); ++i) {
    bindings.emplace(identifier.parameters[i], rewriter_.placeholder(identifier.keys[i], node.at));
  }
  Expr* value = TRY(rewriter_.try_out(*node.value, node.at, bindings, "inline " + identifier.name));
  TRY(rules_.assignable(*value, identifier.type, *value));
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

Checked<void> Inlines::value(Expr* e, const Identifier& identifier) {
  Expr* value = TRY(copier_.copy(*identifier.value, e->at, {}, "inline " + identifier.name));
  TRY(walker_.resolve_dynamic(value));
  return rewriter_.become(e, value, identifier.type);
}

Checked<void> Inlines::element(Expr* e, const Identifier& identifier) {
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
    TRY(walker_.resolve(argument));
    if (!rules_.assignable(*e, identifier.keys[i], *argument)) {
      return complain("D_PROTO_ARG", argument->at,
                      fmt::format("{}[ ] key #{} is incompatible with prototype: prototype: {}, "
                                  "argument: {}",
                                  identifier.name, i + 1, types_.name(identifier.keys[i]),
                                  types_.name(argument->type)));
    }
    const auto [prologue, again] = TRY(rewriter_.evaluate_once(argument));
    if (prologue != nullptr) prologues.push_back(prologue);
    bindings.emplace(identifier.parameters[i], rewriter_.converted(again, identifier.keys[i]));
  }
  Expr* value = TRY(copier_.copy(*identifier.value, e->at, bindings, "inline " + identifier.name));
  for (Expr* prologue : prologues) value = make_comma(arena_, e->at, prologue, value);
  TRY(walker_.resolve_dynamic(value));
  return rewriter_.become(e, value, identifier.type);
}

}  // namespace ringside::d
