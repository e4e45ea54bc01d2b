// In this file: specifiers (the words before declarators), structures and enumerations, declarators
// (pointers, arrays, functions and keys around a name), and the names of types.
#include "dif/d/resolve/type_resolver.h"

#include <fmt/format.h>

#include <set>
#include <unordered_set>

#include "dif/d/resolve/resolve.h"
#include "dif/program/builtin.h"

namespace ringside::d {

namespace {

using Base = TypeSpec::Base;

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

Checked<TypeId> TypeResolver::resolve_specifiers(TypeSpec& spec) {
  if (!spec.resolved) {
    TypeId type = TRY(base_type(spec));
    if (spec.base == Base::Struct || spec.base == Base::Union) type = TRY(struct_type(spec));
    if (spec.base == Base::Enum) type = TRY(enum_type(spec));
    spec.resolved = spec.is_userland ? types_.graph().userland(type) : type;
  }
  return *spec.resolved;
}

/// char, int and the words that stand for them, alone or with signs and sizes.
Checked<TypeId> TypeResolver::integer_type(const TypeSpec& spec) {
  std::string words = spec.is_unsigned ? "unsigned " : "";
  if (spec.base == Base::Char) {
    if (spec.is_short || spec.longs > 0) {
      return complain("D_DECL_CHARATTR", spec.at,
                      "invalid type declaration: short and long may not be used with char type");
    }
    if (spec.is_signed) words = "signed ";
    return types_.named(words + "char");
  }
  if (spec.is_short) return types_.named(words + "short");
  if (spec.longs == 2) return types_.named(words + "long long");
  return types_.named(words + (spec.longs == 1 ? "long" : "int"));
}

Checked<TypeId> TypeResolver::base_type(const TypeSpec& spec) {
  const bool sized = spec.is_short || spec.longs > 0;
  const bool marked = spec.is_signed || spec.is_unsigned;
  if (spec.is_signed && spec.is_unsigned) {
    return complain("D_DECL_COMBO", spec.at, "invalid type combination");
  }
  if (spec.longs > 2 || (spec.is_short && spec.longs > 0)) {
    return complain(
        "D_UNKNOWN", spec.at,
        fmt::format("failed to resolve type {}{}: Unknown type name", spec.is_short ? "short " : "",
                    spec.longs > 2    ? "long long long"
                    : spec.longs == 2 ? "long long"
                                      : "long"));
  }
  if (spec.base == Base::Char || spec.base == Base::Int) return integer_type(spec);
  if (spec.base == Base::None) {
    if (sized || marked || spec.storage != Storage::None || spec.is_const || spec.is_volatile) {
      return integer_type(spec);
    }
    return complain("D_DECL_USELESS", spec.at, "declaration has no type");
  }
  if (spec.base == Base::Void && (sized || marked)) {
    return complain("D_DECL_VOIDATTR", spec.at,
                    "invalid type declaration: attributes may not be used with void type");
  }
  if (marked) {
    return complain("D_DECL_SIGNINT", spec.at,
                    "invalid type declaration: signed and unsigned may only be used with integer "
                    "type");
  }
  if (spec.base == Base::Double && spec.longs == 1 && !spec.is_short) {
    return types_.named("long double");
  }
  if (sized) {
    return complain("D_DECL_LONGINT", spec.at,
                    "invalid type declaration: short and long may only be used with integer type");
  }
  if (spec.base == Base::Float) return types_.named("float");
  if (spec.base == Base::Double) return types_.named("double");
  if (spec.base == Base::String) return types_.string;
  if (spec.base != Base::Named) return TypeId{};
  const auto found = spec.scope != nullptr
                         ? std::optional(TRY(scoped_type(TypeKind::Typedef, spec)))
                         : find_type(*spec.name);
  if (found) {
    types_.use_typedef(*found);
    return *found;
  }
  return complain("D_SYNTAX", spec.at, fmt::format("\"{}\" is not the name of a type", *spec.name));
}

/// Of what is not the program's own. C's and D's are the types that every program has; what several
/// modules have alike is vmlinux's.
bool TypeResolver::is_in_scope(TypeId type, std::string_view scope) const {
  const TypeKind kind = types_.graph()[type].kind;
  const bool basic = kind == TypeKind::Integer || kind == TypeKind::Float ||
                     kind == TypeKind::Void || kind == TypeKind::String;
  const std::string module = kernel_.type_module(type);
  if (scope == "C" || scope == "D") return basic || module.empty();
  return module == scope || (module == "vmlinux" && kernel_.has_module(scope));
}

/// D`name, struct module`name. `kind` is Typedef for a name without a word before it.
Checked<TypeId> TypeResolver::scoped_type(TypeKind kind, const TypeSpec& spec) const {
  const bool tagged = kind != TypeKind::Typedef;
  if (*spec.scope == "D") {
    const auto tag = tags_.find({kind, *spec.name});
    if (tagged && tag != tags_.end()) return tag->second;
    const auto own = typedefs_.find(*spec.name);
    if (!tagged && own != typedefs_.end()) return own->second;
  }
  const auto found =
      tagged ? types_.graph().find(kind, *spec.name) : types_.graph().find(*spec.name);
  if (found && is_in_scope(*found, *spec.scope)) return *found;
  const std::string_view word = kind == TypeKind::Struct  ? "struct "
                                : kind == TypeKind::Union ? "union "
                                : kind == TypeKind::Enum  ? "enum "
                                                          : "";
  return complain("D_UNKNOWN", spec.at,
                  fmt::format("failed to resolve type {}{}`{}: Unknown type name", word,
                              *spec.scope, *spec.name));
}

Checked<TypeId> TypeResolver::tag_type(TypeKind kind, const TypeSpec& spec) {
  if (spec.scope != nullptr) return scoped_type(kind, spec);
  const auto own = tags_.find({kind, *spec.name});
  if (own != tags_.end()) return own->second;
  if (const auto found = types_.graph().find(kind, *spec.name)) return *found;
  if (kind == TypeKind::Enum) {
    return complain("D_DECL_INCOMPLETE", spec.at,
                    fmt::format("enum {} is not defined", *spec.name));
  }
  const TypeId forward = types_.graph().add(
      {.kind = TypeKind::Forward, .is_union = kind == TypeKind::Union, .name = *spec.name});
  tags_.emplace(std::pair(kind, *spec.name), forward);
  return forward;
}

Checked<TypeId> TypeResolver::struct_type(TypeSpec& spec) {
  const TypeKind kind = spec.base == Base::Struct ? TypeKind::Struct : TypeKind::Union;
  if (!spec.is_definition) return tag_type(kind, spec);

  TypeGraph& graph = types_.graph();
  std::optional<TypeId> forward;
  if (spec.name != nullptr) {
    const auto own = tags_.find({kind, *spec.name});
    // Its own members may point at it.
    forward = own != tags_.end() ? own->second
                                 : graph.add({.kind = TypeKind::Forward,
                                              .is_union = kind == TypeKind::Union,
                                              .name = *spec.name});
    tags_[{kind, *spec.name}] = *forward;
  }
  StructLayout layout(kind, types_, alignments_);
  for (const Declaration* member : *spec.members) TRY(add_members(layout, *member));
  const std::string_view name = spec.name != nullptr ? std::string_view(*spec.name) : "";
  const TypeId made = graph.add_struct(kind, name, layout.size(), layout.members());
  if (!forward) return made;
  graph.replace(*forward, Type(graph[made]));
  return *forward;
}

Checked<void> TypeResolver::add_members(StructLayout& layout, const Declaration& declaration) {
  if (declaration.spec->storage != Storage::None) {
    return complain("D_SYNTAX", declaration.at, "a storage class may not be used with a member");
  }
  const TypeId base = TRY(resolve_specifiers(*declaration.spec));
  if (declaration.declarators.empty()) {
    const Declarator anonymous{.at = declaration.at, .name = nullptr, .derivations = {}};
    return add_member(layout, anonymous, base);
  }
  for (const Declarator* declarator : declaration.declarators) {
    const TypeId type = TRY(apply_declarator(base, *declarator));
    TRY(add_member(layout, *declarator, type));
  }
  return {};
}

Checked<void> TypeResolver::add_member(StructLayout& layout, const Declarator& declarator,
                                       TypeId type) {
  TRY(layout.check(declarator, type));
  if (declarator.bit_width == nullptr) return layout.place(declarator, type, std::nullopt);
  if (!types_.is_integer(type)) {
    return complain("D_DECL_BFTYPE", declarator.at,
                    fmt::format("invalid type for bit-field: {}", types_.name(type)));
  }
  const std::int64_t bits =
      TRY(expressions_.resolve_constant(declarator.bit_width, "bit-field size", "D_DECL_BFCONST"));
  return layout.place(declarator, type, bits);
}

/// The value of an enumerator, where one without its own has `next`.
Checked<std::int64_t> TypeResolver::enumerator_value(const EnumeratorSpec& enumerator,
                                                     std::int64_t next) {
  if (enumerator.value != nullptr) {
    const auto value = expressions_.resolve_constant(enumerator.value, "enumerator");
    if (!value && value.error().tag != "D_DECL_ENCONST") return tl::make_unexpected(value.error());
    if (!value) {
      return complain("D_DECL_ENCONST", enumerator.at,
                      fmt::format("enumerator '{}' must be assigned to an integral constant "
                                  "expression",
                                  *enumerator.name));
    }
    next = *value;
  }
  if (next >= INT32_MIN && next <= INT32_MAX) return next;
  return complain("D_DECL_ENOFLOW", enumerator.at,
                  fmt::format("enumerator '{}' value overflows INT_MAX", *enumerator.name));
}

/// Its type is int until that of the whole is known.
Checked<void> TypeResolver::declare_enumerator(const EnumeratorSpec& enumerator,
                                               std::int64_t value) {
  const std::string& name = *enumerator.name;
  // The system's headers say again what D's libraries say.
  const Identifier* const known = identifiers_.find_identifier(Scope::Global, name);
  const bool again = known != nullptr && known->kind == Identifier::Kind::Inline &&
                     known->value->constant == static_cast<std::uint64_t>(value);
  if (again) return {};
  const bool built_in = dif::find_builtin(name) && !identifiers_.is_hidden(name);
  if (enumerators_.contains(name) || known != nullptr || built_in) {
    return complain("D_DECL_IDRED", enumerator.at, fmt::format("identifier redeclared: {}", name));
  }
  enumerators_.emplace(name, std::pair(types_.int32, value));
  return {};
}

Checked<TypeId> TypeResolver::enum_type(const TypeSpec& spec) {
  if (!spec.is_definition) return tag_type(TypeKind::Enum, spec);
  std::vector<Enumerator> values;
  std::unordered_set<std::string_view> names;
  std::int64_t next = 0;
  for (const EnumeratorSpec& enumerator : *spec.enumerators) {
    const std::int64_t value = TRY(enumerator_value(enumerator, next));
    if (!names.insert(*enumerator.name).second) {
      return complain(
          "D_UNKNOWN", enumerator.at,
          fmt::format("failed to define enumerator '{}': it is defined twice", *enumerator.name));
    }
    values.push_back({*enumerator.name, value});
    next = value + 1;
    TRY(declare_enumerator(enumerator, value));
  }
  const std::string_view name = spec.name != nullptr ? std::string_view(*spec.name) : "";
  const TypeId made = types_.graph().add_enum(name, 4, true, values);
  for (const Enumerator& value : values) {
    const auto own = enumerators_.find(std::string(value.name));
    if (own != enumerators_.end()) own->second.first = made;
  }
  if (spec.name != nullptr) tags_[{TypeKind::Enum, *spec.name}] = made;
  return made;
}

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
      const TypeId type = TRY(resolve_type_name(*parameter));
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
  const auto known = expressions_.resolve_constant(step.count, "array size", "D_DECL_ARRSUB");
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
/// `userland` is said of what pointers point at: what is declared itself is D's.
Checked<TypeId> TypeResolver::apply_declarator(TypeId base, const Declarator& declarator,
                                               bool keys_allowed, Unsized unsized) {
  for (std::size_t i = declarator.derivations.size(); i-- > 0;) {
    const Derivation& step = declarator.derivations[i];
    switch (step.kind) {
      case Derivation::Kind::Pointer:
        if (types_.is_user_pointer(base)) base = types_.graph().userland(base);
        base = types_.graph().pointer_to(base);
        break;
      case Derivation::Kind::Function:
        base = TRY(function_type(types_.graph().without_userland(base), step, declarator.at));
        break;
      case Derivation::Kind::Array:
        base = TRY(array_type(types_.graph().without_userland(base), declarator, step,
                              i == 0 ? unsized : Unsized::Refused));
        break;
      case Derivation::Kind::Keys:
        if (keys_allowed && i == 0) break;
        return complain("D_DECL_DYNOBJ", declarator.at,
                        fmt::format("cannot have dynamic {}: {}",
                                    declarator.name != nullptr ? "object" : "type",
                                    declarator.name != nullptr ? *declarator.name : "(unnamed)"));
    }
  }
  return types_.graph().without_userland(base);
}

Checked<TypeId> TypeResolver::resolve_type_name(Declaration& declaration) {
  const Declarator& declarator = *declaration.declarators.front();
  const TypeId base = TRY(resolve_specifiers(*declaration.spec));
  const bool dynamic = !declarator.derivations.empty() &&
                       declarator.derivations.front().kind == Derivation::Kind::Keys;
  if (dynamic && declarator.name != nullptr) {  // only parameters have names here
    return complain("D_DECL_PROTO_TYPE", declarator.at,
                    fmt::format("prototype may not use parameter of type dynamic variable: {}",
                                *declarator.name));
  }
  return apply_declarator(base, declarator);
}

Checked<std::vector<TypeId>> TypeResolver::resolve_key_types(const Declarator& declarator) {
  std::vector<TypeId> keys;
  TRY(different_names(*declarator.derivations.front().parameters));
  for (Declaration* key : *declarator.derivations.front().parameters) {
    const Storage storage = key->spec->storage;
    if (storage != Storage::None && storage != Storage::Register) {
      return complain("D_DECL_PARMCLASS", key->at,
                      "inappropriate storage class for function or associative array parameter");
    }
    const TypeId type = types_.decay(TRY(resolve_type_name(*key)));
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
  const TypeId target = TRY(apply_declarator(base, declarator));
  const auto known = typedefs_.find(*declarator.name);
  const bool variable = identifiers_.find_identifier(Scope::Global, *declarator.name) != nullptr;
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

std::optional<TypeId> TypeResolver::find_type(const std::string& name) const {
  const auto own = typedefs_.find(name);
  return own != typedefs_.end() ? std::optional(own->second) : types_.graph().find(name);
}

std::optional<TypeId> TypeResolver::find_named_type(std::string_view name) const {
  constexpr std::string_view kStruct = "struct ";
  if (!name.starts_with(kStruct)) return find_type(std::string(name));
  const std::string tag(name.substr(kStruct.size()));
  const auto own = tags_.find({TypeKind::Struct, tag});
  return own != tags_.end() ? std::optional(own->second)
                            : types_.graph().find(TypeKind::Struct, tag);
}

std::optional<std::pair<TypeId, std::int64_t>> TypeResolver::find_enumerator(
    const std::string& name) const {
  const auto own = enumerators_.find(name);
  return own != enumerators_.end() ? std::optional(own->second) : std::nullopt;
}

TypeId TypeResolver::completed(TypeId type) const {
  if (types_.kind(type) != TypeKind::Forward) return type;
  const std::string_view name = types_.at(type).name;
  for (const TypeKind kind : {TypeKind::Struct, TypeKind::Union}) {
    const auto own = tags_.find({kind, std::string(name)});
    if (own != tags_.end() && types_.kind(own->second) == kind) type = own->second;
    const auto found = types_.graph().find(kind, name);
    if (types_.kind(type) == TypeKind::Forward && found) type = *found;
  }
  return type;
}

}  // namespace ringside::d
