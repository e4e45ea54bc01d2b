// Declarators, typedefs, variables that are declared before their use, and inlines.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "dif/d/resolve/resolve.h"

namespace ringside::d {

namespace {

/// Parameters need no names, but those that have one differ.
Checked<void> different_names(const std::vector<Declaration*>& parameters) {
  std::set<std::string_view> names;
  for (const Declaration* parameter : parameters) {
    const Text name = parameter->declarators.front()->name;
    if (name == nullptr || names.insert(*name).second) continue;
    return complain("D_DECL_PROTO_FORM", parameter->at,
                    fmt::format("parameter is already declared in prototype: {}", *name));
  }
  return {};
}

}  // namespace

Checked<TypeId> Resolver::function_type(TypeId result, const Derivation& step, const Location& at) {
  if (types_.is_array(result) || types_.is_function(result)) {
    return complain("D_DECL_PROTO_FORM", at, "a function may not return an array or a function");
  }
  std::vector<Parameter> parameters;
  if (step.parameters != nullptr) {
    TRY(different_names(*step.parameters));
    for (Declaration* parameter : *step.parameters) {
      const Storage storage = parameter->spec->storage;
      if (storage != Storage::None && storage != Storage::Register) {
        return complain("D_DECL_PARMCLASS", parameter->at,
                        "inappropriate storage class for function or associative array parameter");
      }
      const TypeId type = TRY(type_name(*parameter));
      const bool only_void = types_.is_void(type) && step.parameters->size() == 1 && !step.variadic;
      if (types_.is_void(type) && !only_void) {
        return complain("D_DECL_PROTO_VOID", parameter->at, "void must be the sole parameter");
      }
      if (const Text name = parameter->declarators.front()->name; only_void && name != nullptr) {
        return complain("D_DECL_PROTO_NAME", parameter->at,
                        fmt::format("void parameter may not have a name: {}", *name));
      }
      if (!only_void) parameters.push_back({{}, types_.decay(type)});
    }
  }
  return types_.graph().add_function(result, parameters, step.variadic);
}

Checked<TypeId> Resolver::array_type(TypeId base, const Declarator& declarator,
                                     const Derivation& step, Unsized unsized) {
  if (types_.is_void(base)) {
    return complain("D_DECL_VOIDOBJ", declarator.at, "cannot have an array of void");
  }
  if (types_.is_function(base)) {
    return complain("D_DECL_INCOMPLETE", declarator.at, "cannot have an array of functions");
  }
  if (step.count == nullptr && unsized == Unsized::Refused) {
    return complain("D_DECL_ARRNULL", declarator.at,
                    "array declaration requires array dimension or tuple signature");
  }
  constexpr std::string_view kWhat =
      "positive integral constant expression or tuple signature expected as array declaration "
      "subscript";
  std::int64_t count = 0;
  if (step.count != nullptr) {
    const auto known = constant(step.count, "array size", "D_DECL_ARRSUB");
    if (!known && known.error().tag != "D_DECL_ARRSUB") return tl::make_unexpected(known.error());
    const bool is_unsigned = known && !types_.is_signed(step.count->type);
    if (known && is_unsigned && *known < 0) {
      return complain("D_DECL_ARRBIG", declarator.at, "array is too big");
    }
    if (!known || *known < 0 || (*known == 0 && unsized == Unsized::Refused)) {
      return complain("D_DECL_ARRSUB", step.count->at, std::string(kWhat));
    }
    count = *known;
  }
  const std::uint64_t size = types_.size(base);
  constexpr std::uint64_t kMost = std::uint64_t{1} << 28;  // bit offsets are 32 bits
  if (count > INT32_MAX || (size != 0 && static_cast<std::uint64_t>(count) > kMost / size)) {
    return complain("D_DECL_ARRBIG", declarator.at, "array is too big");
  }
  return types_.graph().array_of(base, static_cast<std::uint32_t>(count));
}

/// Applies the derivations from the base type towards the name. The keys of an associative array
/// come next to the name, and are the caller's to read.
Checked<TypeId> Resolver::apply(TypeId base, const Declarator& declarator, bool keys_allowed,
                                Unsized unsized) {
  for (std::size_t i = declarator.derivations.size(); i-- > 0;) {
    const Derivation& step = declarator.derivations[i];
    switch (step.kind) {
      case Derivation::Kind::Pointer: base = types_.graph().pointer_to(base); break;
      case Derivation::Kind::Function: base = TRY(function_type(base, step, declarator.at)); break;
      case Derivation::Kind::Array:
        base = TRY(array_type(base, declarator, step, i == 0 ? unsized : Unsized::Refused));
        break;
      case Derivation::Kind::Keys:
        if (keys_allowed && i == 0) break;
        return complain("D_DECL_DYNOBJ", declarator.at,
                        fmt::format("cannot have dynamic {}: {}",
                                    declarator.name != nullptr ? "object" : "type",
                                    declarator.name != nullptr ? *declarator.name : "(unnamed)"));
    }
  }
  return base;
}

Checked<TypeId> Resolver::type_name(Declaration& declaration) {
  const Declarator& declarator = *declaration.declarators.front();
  const TypeId base = TRY(spec_type(*declaration.spec));
  const bool dynamic = !declarator.derivations.empty() &&
                       declarator.derivations.front().kind == Derivation::Kind::Keys;
  if (dynamic && declarator.name != nullptr) {  // only parameters have names here
    return complain("D_DECL_PROTO_TYPE", declarator.at,
                    fmt::format("prototype may not use parameter of type dynamic variable: {}",
                                *declarator.name));
  }
  return apply(base, declarator);
}

Checked<void> Resolver::declare(const Declaration& declaration) {
  TypeSpec& spec = *declaration.spec;
  const TypeId base = TRY(spec_type(spec));
  const bool names_type = spec.name != nullptr || spec.base == TypeSpec::Base::Enum;
  const bool tagged = spec.base == TypeSpec::Base::Struct || spec.base == TypeSpec::Base::Union ||
                      spec.base == TypeSpec::Base::Enum;
  if (declaration.declarators.empty() && (!tagged || !names_type)) {
    return complain("D_DECL_USELESS", declaration.at, "useless declaration");
  }
  for (const Declarator* declarator : declaration.declarators) {
    if (spec.storage == Storage::Typedef) {
      TRY(declare_typedef(*declarator, base));
    } else {
      TRY(declare_variable(spec, *declarator, base));
    }
  }
  return {};
}

Checked<void> Resolver::declare_typedef(const Declarator& declarator, TypeId base) {
  const TypeId target = TRY(apply(base, declarator));
  const auto known = typedefs_.find(*declarator.name);
  const bool variable = find(Scope::Global, *declarator.name) != nullptr;
  if (known != typedefs_.end() || variable) {
    if (!variable && types_.same(known->second, target)) return {};
    return complain("D_DECL_IDRED", declarator.at,
                    fmt::format("identifier redeclared: {}", *declarator.name));
  }
  const TypeId made =
      types_.graph().add({.kind = TypeKind::Typedef, .name = *declarator.name, .target = target});
  typedefs_.emplace(*declarator.name, made);
  return {};
}

/// The types of an associative array's keys, or of an inline's parameters.
Checked<std::vector<TypeId>> Resolver::key_types(const Declarator& declarator) {
  std::vector<TypeId> keys;
  TRY(different_names(*declarator.derivations.front().parameters));
  for (Declaration* key : *declarator.derivations.front().parameters) {
    const Storage storage = key->spec->storage;
    if (storage != Storage::None && storage != Storage::Register) {
      return complain("D_DECL_PARMCLASS", key->at,
                      "inappropriate storage class for function or associative array parameter");
    }
    const TypeId type = types_.decay(TRY(type_name(*key)));
    if (!types_.value_type(type)) {
      return complain("D_DECL_PROTO_TYPE", key->at,
                      fmt::format("key #{} of {}[ ] may not be of type {}", keys.size() + 1,
                                  *declarator.name, types_.name(type)));
    }
    keys.push_back(type);
  }
  return keys;
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
  const TypeId type =
      TRY(apply(base, declarator, true, is_extern ? Unsized::Allowed : Unsized::Refused));
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
    keys = TRY(key_types(declarator));
  }
  const Symbol* known = find(scope, name);
  if (known != nullptr ||
      (scope == Scope::Global &&
       (is_of_d(name) || enumerators_.contains(name) || typedefs_.contains(name)))) {
    const bool same = known != nullptr && known->kind == Symbol::Kind::Variable &&
                      types_.same(known->type, type) &&
                      std::ranges::equal(known->keys, keys,
                                         [&](TypeId a, TypeId b) { return types_.same(a, b); });
    if (same) return {};
    return complain("D_DECL_IDRED", declarator.at, fmt::format("identifier redeclared: {}", name));
  }
  if (!types_.value_type(type) && !is_extern) {
    return complain("D_DECL_INCOMPLETE", declarator.at,
                    fmt::format("incomplete struct/union/enum {}: {}", types_.name(type), name));
  }
  Symbol* symbol = TRY(add_variable(scope, name, declarator.at));
  symbol->type = type;
  symbol->is_associative = associative;
  symbol->keys = std::move(keys);
  symbol->is_extern = is_extern;
  return {};
}

Checked<void> Resolver::define_inline(const InlineNode& node) {
  const Declarator& declarator = *node.declarator;
  const TypeId base = TRY(spec_type(*node.spec));
  if (node.spec->storage != Storage::None) {
    return complain("D_DECL_BADCLASS", node.at, "an inline may not have a storage class");
  }
  const std::string& name = *declarator.name;
  Symbol symbol;
  symbol.kind = Symbol::Kind::Inline;
  symbol.name = name;
  symbol.type = TRY(apply(base, declarator, true));
  symbol.value = node.value;
  symbol.is_associative = !declarator.derivations.empty() &&
                          declarator.derivations.front().kind == Derivation::Kind::Keys;
  if (symbol.is_associative) {
    symbol.keys = TRY(key_types(declarator));
    for (const Declaration* key : *declarator.derivations.front().parameters) {
      const Text parameter = key->declarators.front()->name;
      if (parameter == nullptr) {
        return complain("D_DECL_PROTO_NAME", key->at,
                        fmt::format("a parameter of inline {}[ ] has no name", name));
      }
      symbol.parameters.push_back(*parameter);
    }
  }
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
  if (find(Scope::Global, name) != nullptr || is_of_d(name) || enumerators_.contains(name)) {
    if (from_library) return {};
    return complain("D_DECL_IDRED", declarator.at, fmt::format("identifier redeclared: {}", name));
  }
  if (!from_library) TRY(check_inline(node, symbol));
  bindings_.erase(name);
  apply_pragmas(symbol);
  symbols_.push_back(std::move(symbol));
  scopes_[0].insert_or_assign(name, &symbols_.back());
  return {};
}

/// An inline that is never used must be right all the same.
Checked<void> Resolver::check_inline(const InlineNode& node, Symbol& symbol) {
  Bindings bindings;
  for (std::size_t i = 0; i < symbol.parameters.size(); ++i) {
    bindings.emplace(symbol.parameters[i], placeholder(symbol.keys[i], node.at));
  }
  Expr* value = clone(*node.value, nullptr, bindings);
  if (value == nullptr) {
    return complain("D_UNKNOWN", node.at, fmt::format("inline {} grows too large", symbol.name));
  }
  const dif::Attributes before = attributes_;
  auto resolved = resolve_dynamic(value);
  attributes_ = before;
  if (!resolved) return resolved;
  TRY(check_assignable(*value, symbol.type, *value));
  if (!value->constant || !types_.is_integer(value->type) || !types_.is_integer(symbol.type)) {
    return {};
  }
  // A number from now on: what names it need not go through all that this one names.
  Expr number;
  number.at = value->at;
  number.type = symbol.type;
  number.constant = types_.cast(value->type, symbol.type, *value->constant);
  symbol.value = arena_.make(std::move(number));
  return {};
}

}  // namespace ringside::d
