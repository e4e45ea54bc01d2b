// C types of the program's own: specifiers, structs and unions with their layout, enums.
#include <fmt/format.h>

#include <algorithm>

#include "dif/d/resolve/resolve.h"

namespace ringside::d {

using Base = TypeSpec::Base;

Checked<TypeId> Resolver::spec_type(TypeSpec& spec) {
  if (!spec.resolved) {
    TypeId type = TRY(base_type(spec));
    if (spec.base == Base::Struct || spec.base == Base::Union) type = TRY(struct_type(spec));
    if (spec.base == Base::Enum) type = TRY(enum_type(spec));
    spec.resolved = type;
  }
  return *spec.resolved;
}

/// char, int and the words that stand for them, alone or with signs and sizes.
Checked<TypeId> Resolver::integer_type(const TypeSpec& spec) {
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

Checked<TypeId> Resolver::base_type(const TypeSpec& spec) {
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
  if (const auto own = typedefs_.find(*spec.name); own != typedefs_.end()) return own->second;
  if (const auto found = types_.graph().find(*spec.name)) return *found;
  return complain("D_SYNTAX", spec.at, fmt::format("\"{}\" is not the name of a type", *spec.name));
}

Checked<TypeId> Resolver::tag_type(TypeKind kind, const TypeSpec& spec) {
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

Checked<TypeId> Resolver::struct_type(TypeSpec& spec) {
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
  Layout layout;
  layout.is_union = kind == TypeKind::Union;
  for (const Declaration* member : *spec.members) TRY(add_members(layout, *member));
  const std::uint64_t bytes = (std::max(layout.size, layout.bits) + 7) / 8;
  const std::uint64_t size = (bytes + layout.align - 1) / layout.align * layout.align;
  const std::string_view name = spec.name != nullptr ? std::string_view(*spec.name) : "";
  const TypeId made = graph.add_struct(kind, name, size, layout.members);
  if (!forward) return made;
  graph.replace(*forward, Type(graph[made]));
  return *forward;
}

std::uint64_t Resolver::alignment(TypeId type, int depth) {
  const Type& is = types_.at(type);
  if (is.kind == TypeKind::Array) return depth < 32 ? alignment(is.target, depth + 1) : 1;
  if (is.kind == TypeKind::Struct || is.kind == TypeKind::Union) {
    if (const auto known = alignments_.find(type.value); known != alignments_.end()) {
      return known->second;
    }
    std::uint64_t most = 1;
    if (depth >= 32) return most;
    for (const Member& member : types_.graph().members(types_.graph().resolve(type))) {
      most = std::max(most, alignment(member.type, depth + 1));
    }
    alignments_.emplace(type.value, most);
    return most;
  }
  return types_.is_string(type) ? 1 : std::clamp<std::uint64_t>(types_.size(type), 1, 16);
}

Checked<void> Resolver::add_members(Layout& layout, const Declaration& declaration) {
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

/// Checks the field and moves `at`, in bits, to where it can lie. The result is its width.
Checked<std::uint64_t> Resolver::place_bit_field(const Declarator& declarator, TypeId type,
                                                 std::uint64_t& at) {
  if (!types_.is_integer(type)) {
    return complain("D_DECL_BFTYPE", declarator.at,
                    fmt::format("invalid type for bit-field: {}", types_.name(type)));
  }
  const std::int64_t bits = TRY(constant(declarator.bit_width, "bit-field size", "D_DECL_BFCONST"));
  if (bits < 0 || (bits == 0 && declarator.name != nullptr)) {
    return complain("D_DECL_BFCONST", declarator.at,
                    "positive integral constant expression expected as bit-field size");
  }
  const auto width = static_cast<std::uint64_t>(bits);
  if (width > types_.size(type) * 8) {
    return complain(
        "D_DECL_BFSIZE", declarator.at,
        fmt::format("bit-field too big for type: {} bits of {}", bits, types_.name(type)));
  }
  const std::uint64_t unit = alignment(type) * 8;
  const bool straddles = bits == 0 || at / unit != (at + width - 1) / unit;
  if (straddles) at = (at + unit - 1) / unit * unit;
  return width;
}

/// An anonymous member's members are those of the struct around it. False when one was there.
bool Resolver::take_names(Layout& layout, TypeId type, int depth) const {
  constexpr std::size_t kMostNames = 1 << 20;  // hostile types can nest without end
  for (const Member& member : types_.graph().members(types_.graph().resolve(type))) {
    if (member.name.empty()) {
      if (depth < 32 && !take_names(layout, member.type, depth + 1)) return false;
    } else if (!layout.names.emplace(member.name).second || layout.names.size() > kMostNames) {
      return false;
    }
  }
  return true;
}

Checked<void> Resolver::add_member(Layout& layout, const Declarator& declarator, TypeId type) {
  constexpr std::uint64_t kMaxBits = std::uint64_t{8} << 28;  // offsets are 32 bits
  const std::string_view name = declarator.name != nullptr ? *declarator.name : std::string_view();
  if (types_.is_void(type) || types_.is_function(type)) {
    return complain(
        "D_DECL_VOIDOBJ", declarator.at,
        fmt::format("cannot have {} member: {}", types_.is_void(type) ? "void" : "function", name));
  }
  const bool anonymous = name.empty() && declarator.bit_width == nullptr;
  if (anonymous ? !take_names(layout, type) : !name.empty() && !layout.names.emplace(name).second) {
    return complain("D_UNKNOWN", declarator.at,
                    fmt::format("failed to define member '{}': duplicate member name", name));
  }
  const std::uint64_t size = types_.size(type);
  if (size == 0 && !types_.is_array(type)) {
    const bool empty = types_.is_struct(type) && types_.kind(type) != TypeKind::Forward;
    if (!empty) {
      return complain("D_DECL_INCOMPLETE", declarator.at,
                      fmt::format("incomplete type {}: {}", types_.name(type), name));
    }
  }
  if (declarator.name == nullptr && declarator.bit_width == nullptr && !types_.is_struct(type)) {
    return complain("D_DECL_MNAME", declarator.at, "member declaration requires a name");
  }
  const std::uint64_t align = alignment(type) * 8;
  std::uint64_t at = layout.is_union ? 0 : layout.bits;
  std::uint64_t width = size * 8;
  Member member{.name = name, .type = type};
  if (declarator.bit_width != nullptr) {
    width = TRY(place_bit_field(declarator, type, at));
    member.bit_width = static_cast<std::uint32_t>(width);
  } else {
    at = (at + align - 1) / align * align;
  }
  if (size > kMaxBits / 8 || at > kMaxBits - width) {
    return complain("D_DECL_ARRBIG", declarator.at, "struct or union is too large");
  }
  member.bit_offset = static_cast<std::uint32_t>(at);
  layout.bits = at + width;
  layout.size = std::max(layout.size, layout.bits);
  layout.align = std::max(layout.align, align / 8);
  if (!member.name.empty() || declarator.bit_width == nullptr) layout.members.push_back(member);
  return {};
}

Checked<TypeId> Resolver::enum_type(const TypeSpec& spec) {
  if (!spec.is_definition) return tag_type(TypeKind::Enum, spec);
  std::vector<Enumerator> values;
  std::unordered_set<std::string_view> names;
  std::int64_t next = 0;
  for (const EnumeratorSpec& enumerator : *spec.enumerators) {
    if (enumerator.value != nullptr) {
      const auto value = constant(enumerator.value, "enumerator");
      if (!value && value.error().tag != "D_DECL_ENCONST") {
        return tl::make_unexpected(value.error());
      }
      if (!value) {
        return complain("D_DECL_ENCONST", enumerator.at,
                        fmt::format("enumerator '{}' must be assigned to an integral constant "
                                    "expression",
                                    *enumerator.name));
      }
      next = *value;
    }
    if (next < INT32_MIN || next > INT32_MAX) {
      return complain("D_DECL_ENOFLOW", enumerator.at,
                      fmt::format("enumerator '{}' value overflows INT_MAX", *enumerator.name));
    }
    if (!names.insert(*enumerator.name).second) {
      return complain(
          "D_UNKNOWN", enumerator.at,
          fmt::format("failed to define enumerator '{}': it is defined twice", *enumerator.name));
    }
    values.push_back({*enumerator.name, next});
    // The system's headers say again what D's libraries say.
    const Symbol* const known = find(Scope::Global, *enumerator.name);
    const bool again = known != nullptr && known->kind == Symbol::Kind::Inline &&
                       known->value->constant == static_cast<std::uint64_t>(next);
    ++next;
    if (again) continue;
    const bool built_in = dif::find_builtin(*enumerator.name) && !is_hidden(*enumerator.name);
    if (enumerators_.contains(*enumerator.name) || known != nullptr || built_in) {
      return complain("D_DECL_IDRED", enumerator.at,
                      fmt::format("identifier redeclared: {}", *enumerator.name));
    }
    enumerators_.emplace(*enumerator.name, std::pair(types_.int32, next - 1));
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

}  // namespace ringside::d
