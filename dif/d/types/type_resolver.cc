// Specifiers: the words before declarators, structures and enumerations with them.
#include "dif/d/types/type_resolver.h"

#include <fmt/format.h>

#include <unordered_set>

#include "dif/program/builtin.h"

namespace ringside::d {

using Base = TypeSpec::Base;

Checked<TypeId> TypeResolver::spec_type(TypeSpec& spec) {
  if (!spec.resolved) {
    TypeId type = TRY(base_type(spec));
    if (spec.base == Base::Struct || spec.base == Base::Union) type = TRY(struct_type(spec));
    if (spec.base == Base::Enum) type = TRY(enum_type(spec));
    spec.resolved = type;
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
                         : find(*spec.name);
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
  const TypeId base = TRY(spec_type(*declaration.spec));
  if (declaration.declarators.empty()) {
    const Declarator anonymous{.at = declaration.at, .name = nullptr, .derivations = {}};
    return add_member(layout, anonymous, base);
  }
  for (const Declarator* declarator : declaration.declarators) {
    const TypeId type = TRY(apply(base, *declarator));
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
      TRY(constants_.constant(declarator.bit_width, "bit-field size", "D_DECL_BFCONST"));
  return layout.place(declarator, type, bits);
}

/// The value of an enumerator, where one without its own has `next`.
Checked<std::int64_t> TypeResolver::enumerator_value(const EnumeratorSpec& enumerator,
                                                     std::int64_t next) {
  if (enumerator.value != nullptr) {
    const auto value = constants_.constant(enumerator.value, "enumerator");
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
  const Identifier* const known = identifiers_.find(Scope::Global, name);
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

std::optional<TypeId> TypeResolver::find(const std::string& name) const {
  const auto own = typedefs_.find(name);
  return own != typedefs_.end() ? std::optional(own->second) : types_.graph().find(name);
}

std::optional<TypeId> TypeResolver::find_named(std::string_view name) const {
  constexpr std::string_view kStruct = "struct ";
  if (!name.starts_with(kStruct)) return find(std::string(name));
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
