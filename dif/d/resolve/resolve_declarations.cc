// Declarators, typedefs, variables that are declared before their use, and inlines.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "dif/d/resolve/resolve.h"

namespace ringside::d {

Checked<void> Resolver::declare(const Declaration& declaration) {
  TypeSpec& spec = *declaration.spec;
  const TypeId base = TRY(declared_.spec_type(spec));
  const bool names_type = spec.name != nullptr || spec.base == TypeSpec::Base::Enum;
  const bool tagged = spec.base == TypeSpec::Base::Struct || spec.base == TypeSpec::Base::Union ||
                      spec.base == TypeSpec::Base::Enum;
  if (declaration.declarators.empty() && (!tagged || !names_type)) {
    return complain("D_DECL_USELESS", declaration.at, "useless declaration");
  }
  for (const Declarator* declarator : declaration.declarators) {
    if (spec.storage == Storage::Typedef) {
      TRY(declared_.declare_typedef(*declarator, base));
    } else {
      TRY(declare_variable(spec, *declarator, base));
    }
  }
  return {};
}

/// Whether the variable is there already, as it is declared now. D_DECL_IDRED for another one.
Checked<bool> Resolver::is_declared(Scope scope, const Declarator& declarator, TypeId type,
                                    const std::vector<TypeId>& keys) {
  const std::string& name = *declarator.name;
  const Symbol* known = symbols_.find(scope, name);
  const bool taken =
      scope == Scope::Global &&
      (symbols_.is_of_d(name) || declared_.find_enumerator(name) || declared_.is_typedef(name));
  if (known == nullptr && !taken) return false;
  const auto same_type = [&](TypeId a, TypeId b) { return types_.same(a, b); };
  const bool same = known != nullptr && known->kind == Symbol::Kind::Variable &&
                    types_.same(known->type, type) &&
                    std::ranges::equal(known->keys, keys, same_type);
  if (same) return true;
  return complain("D_DECL_IDRED", declarator.at, fmt::format("identifier redeclared: {}", name));
}

Checked<void> Resolver::declare_variable(const TypeSpec& spec, const Declarator& declarator,
                                         TypeId base) {
  if (spec.storage == Storage::Auto || spec.storage == Storage::Static ||
      spec.storage == Storage::Register) {
    return complain("D_DECL_BADCLASS", declarator.at,
                    "specified storage class not appropriate in D");
  }
  const std::string& name = *declarator.name;
  const bool is_extern = spec.storage == Storage::Extern;
  const TypeId type = TRY(
      declared_.apply(base, declarator, true,
                      is_extern ? TypeResolver::Unsized::Allowed : TypeResolver::Unsized::Refused));
  if (types_.is_function(type)) return {};  // a prototype: nothing in D calls it
  if (types_.is_array(type) && types_.at(type).count == 0) {
    externs_[name] = type;  // of the kernel's symbol; there is no such variable in D
    return {};
  }
  if (types_.is_void(type)) {
    return complain("D_DECL_VOIDOBJ", declarator.at,
                    fmt::format("cannot have void variable: {}", name));
  }
  const Scope scope = spec.storage == Storage::Thread   ? Scope::Thread
                      : spec.storage == Storage::Clause ? Scope::Clause
                                                        : Scope::Global;
  std::vector<TypeId> keys;
  const bool associative = !declarator.derivations.empty() &&
                           declarator.derivations.front().kind == Derivation::Kind::Keys;
  if (associative) {
    if (scope == Scope::Clause) {
      return complain("D_DECL_LOCASSC", declarator.at,
                      fmt::format("cannot define associative array as local variable: {}", name));
    }
    keys = TRY(declared_.key_types(declarator));
  }
  if (TRY(is_declared(scope, declarator, type, keys))) return {};
  if (!types_.value_type(type) && !is_extern) {
    return complain("D_DECL_INCOMPLETE", declarator.at,
                    fmt::format("incomplete struct/union/enum {}: {}", types_.name(type), name));
  }
  Symbol* symbol = TRY(symbols_.add_variable(scope, name, declarator.at));
  symbol->type = type;
  symbol->is_associative = associative;
  symbol->keys = std::move(keys);
  symbol->is_extern = is_extern;
  return {};
}

/// An inline with keys: their types and names.
Checked<void> Resolver::take_parameters(Symbol& symbol, const Declarator& declarator) {
  symbol.keys = TRY(declared_.key_types(declarator));
  for (const Declaration* key : *declarator.derivations.front().parameters) {
    const Text parameter = key->declarators.front()->name;
    if (parameter == nullptr) {
      return complain("D_DECL_PROTO_NAME", key->at,
                      fmt::format("a parameter of inline {}[ ] has no name", symbol.name));
    }
    symbol.parameters.push_back(*parameter);
  }
  return {};
}

Checked<void> Resolver::define_inline(const InlineNode& node) {
  const Declarator& declarator = *node.declarator;
  const TypeId base = TRY(declared_.spec_type(*node.spec));
  if (node.spec->storage != Storage::None) {
    return complain("D_DECL_BADCLASS", node.at, "an inline may not have a storage class");
  }
  const std::string& name = *declarator.name;
  Symbol symbol;
  symbol.kind = Symbol::Kind::Inline;
  symbol.name = name;
  symbol.type = TRY(declared_.apply(base, declarator, true));
  symbol.value = node.value;
  symbol.is_associative = !declarator.derivations.empty() &&
                          declarator.derivations.front().kind == Derivation::Kind::Keys;
  if (symbol.is_associative) TRY(take_parameters(symbol, declarator));
  if (types_.is_array(symbol.type)) {
    return complain("D_DECL_ARRNULL", declarator.at,
                    fmt::format("inline declaration cannot be of scalar array type: {}", name));
  }
  if (types_.is_void(symbol.type) || types_.is_function(symbol.type)) {
    return complain("D_DECL_VOIDOBJ", declarator.at,
                    fmt::format("cannot have {} inline: {}", types_.name(symbol.type), name));
  }
  // A guest without some field keeps its own, empty meaning of a library's name: that is not known
  // before somebody uses it.
  const bool from_library = node.at.file != 0;
  if (symbols_.find(Scope::Global, name) != nullptr || symbols_.is_of_d(name) ||
      declared_.find_enumerator(name)) {
    if (from_library) return {};
    return complain("D_DECL_IDRED", declarator.at, fmt::format("identifier redeclared: {}", name));
  }
  if (!from_library) TRY(check_inline(node, symbol));
  symbols_.add_inline(std::move(symbol));
  return {};
}

/// An inline that is never used must be right all the same.
Checked<void> Resolver::check_inline(const InlineNode& node, Symbol& symbol) {
  Bindings bindings;
  for (std::size_t i = 0; i < symbol.parameters.size(); ++i) {
    bindings.emplace(symbol.parameters[i], placeholder(symbol.keys[i], node.at));
  }
  Expr* value = copier_.clone(*node.value, nullptr, bindings);
  if (value == nullptr) {
    return complain("D_UNKNOWN", node.at, fmt::format("inline {} grows too large", symbol.name));
  }
  const dif::Attributes before = stability_.save();
  auto resolved = resolve_dynamic(value);
  stability_.restore(before);
  if (!resolved) return resolved;
  TRY(rules_.assignable(*value, symbol.type, *value));
  if (!value->constant || !types_.is_integer(value->type) || !types_.is_integer(symbol.type)) {
    return {};
  }
  if (value->late) return {};
  // A number from now on: an expression that names it need not go through all that this one names.
  Expr number;
  number.at = value->at;
  number.type = symbol.type;
  number.constant = types_.cast(value->type, symbol.type, *value->constant);
  symbol.value = arena_.make(std::move(number));
  return {};
}

}  // namespace ringside::d
