// Declarators: pointers, arrays, functions and keys around a name.
#include <fmt/format.h>

#include <set>

#include "dif/d/types/type_resolver.h"

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

Checked<TypeId> TypeResolver::function_type(TypeId result, const Derivation& step,
                                            const Location& at) {
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

/// The number of elements, where the array gives it.
Checked<std::int64_t> TypeResolver::array_count(const Declarator& declarator,
                                                const Derivation& step, Unsized unsized) {
  constexpr std::string_view kWhat =
      "positive integral constant expression or tuple signature expected as array declaration "
      "subscript";
  const auto known = constants_.constant(step.count, "array size", "D_DECL_ARRSUB");
  if (!known && known.error().tag != "D_DECL_ARRSUB") return tl::make_unexpected(known.error());
  const bool is_unsigned = known && !types_.is_signed(step.count->type);
  if (known && is_unsigned && *known < 0) {
    return complain("D_DECL_ARRBIG", declarator.at, "array is too big");
  }
  if (!known || *known < 0 || (*known == 0 && unsized == Unsized::Refused)) {
    return complain("D_DECL_ARRSUB", step.count->at, std::string(kWhat));
  }
  return *known;
}

Checked<TypeId> TypeResolver::array_type(TypeId base, const Declarator& declarator,
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
  const std::int64_t count =
      step.count != nullptr ? TRY(array_count(declarator, step, unsized)) : 0;
  const std::uint64_t size = types_.measure(base);
  constexpr std::uint64_t kMost = std::uint64_t{1} << 28;  // bit offsets are 32 bits
  if (count > INT32_MAX || (size != 0 && static_cast<std::uint64_t>(count) > kMost / size)) {
    return complain("D_DECL_ARRBIG", declarator.at, "array is too big");
  }
  return types_.graph().array_of(base, static_cast<std::uint32_t>(count));
}

/// From the base type towards the name, next to which the keys of an associative array stand.
Checked<TypeId> TypeResolver::apply(TypeId base, const Declarator& declarator, bool keys_allowed,
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

Checked<TypeId> TypeResolver::type_name(Declaration& declaration) {
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

Checked<std::vector<TypeId>> TypeResolver::key_types(const Declarator& declarator) {
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

Checked<void> TypeResolver::declare_typedef(const Declarator& declarator, TypeId base) {
  const TypeId target = TRY(apply(base, declarator));
  const auto known = typedefs_.find(*declarator.name);
  const bool variable = identifiers_.find(Scope::Global, *declarator.name) != nullptr;
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

}  // namespace ringside::d
