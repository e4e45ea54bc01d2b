#include "dif/d/resolve/declarations.h"

#include <fmt/format.h>

#include <algorithm>

namespace ringside::d {

Checked<void> Declarations::declare(const Declaration& declaration) {
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
Checked<bool> Declarations::is_declared(Scope scope, const Declarator& declarator, TypeId type,
                                        const std::vector<TypeId>& keys) const {
  const std::string& name = *declarator.name;
  const Identifier* known = identifiers_.find(scope, name);
  const bool taken =
      scope == Scope::Global &&
      (identifiers_.is_of_d(name) || declared_.find_enumerator(name) || declared_.is_typedef(name));
  if (known == nullptr && !taken) return false;
  const auto same_type = [&](TypeId a, TypeId b) { return types_.same(a, b); };
  const bool same = known != nullptr && known->kind == Identifier::Kind::Variable &&
                    types_.same(known->type, type) &&
                    std::ranges::equal(known->keys, keys, same_type);
  if (same) return true;
  return complain("D_DECL_IDRED", declarator.at, fmt::format("identifier redeclared: {}", name));
}

Checked<void> Declarations::declare_variable(const TypeSpec& spec, const Declarator& declarator,
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
    unsized_arrays_[name] = type;  // of the kernel's symbol; there is no such variable in D
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
  Identifier* identifier = TRY(identifiers_.add_variable(scope, name, declarator.at));
  identifier->type = type;
  identifier->is_associative = associative;
  identifier->keys = std::move(keys);
  identifier->is_extern = is_extern;
  return {};
}

std::optional<TypeId> Declarations::extern_type(const std::string& name) const {
  if (const auto known = unsized_arrays_.find(name); known != unsized_arrays_.end()) {
    return known->second;
  }
  const Identifier* const declared = identifiers_.find(Scope::Global, name);
  return declared != nullptr && declared->is_extern ? std::optional(declared->type) : std::nullopt;
}

}  // namespace ringside::d
