// Declarations: C types of the program's own, and variables that are declared before their use.
// In this file, top to bottom: specifiers, structs and enums, declarators, variables.
#include <fmt/format.h>

#include <algorithm>

#include "dif/d/resolve.h"

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

Checked<TypeId> Resolver::base_type(const TypeSpec& spec) {
  const bool sized = spec.is_short || spec.longs > 0;
  const bool marked = spec.is_signed || spec.is_unsigned;
  if (spec.is_signed && spec.is_unsigned) {
    return complain("D_DECL_SIGNINT", spec.at, "invalid type: both signed and unsigned");
  }
  if (spec.longs > 2 || (spec.is_short && spec.longs > 0)) {
    return complain("D_DECL_LONGINT", spec.at, "invalid type: too many or conflicting sizes");
  }
  std::string words = spec.is_unsigned ? "unsigned " : "";
  switch (spec.base) {
    case Base::Char:
      if (sized) return complain("D_DECL_CHARATTR", spec.at, "invalid type: sized char");
      if (spec.is_signed) words = "signed ";
      return types_.named(words + "char");
    case Base::None:
      if (!sized && !marked) {
        if (spec.storage == Storage::None) {
          return complain("D_DECL_USELESS", spec.at, "declaration has no type");
        }
        return types_.int32;
      }
      [[fallthrough]];
    case Base::Int:
      if (spec.is_short) return types_.named(words + "short");
      if (spec.longs == 2) return types_.named(words + "long long");
      return types_.named(words + (spec.longs == 1 ? "long" : "int"));
    case Base::Float:
    case Base::Double:
      if (marked || spec.is_short || spec.longs > (spec.base == Base::Double ? 1 : 0)) {
        return complain("D_DECL_COMBO", spec.at, "invalid type combination");
      }
      if (spec.base == Base::Float) return types_.named("float");
      return types_.named(spec.longs == 1 ? "long double" : "double");
    default: break;
  }
  if (sized || marked) return complain("D_DECL_COMBO", spec.at, "invalid type combination");
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
  const TypeId forward = types_.graph().add({.kind = TypeKind::Forward, .name = *spec.name});
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
    if (own != tags_.end() && graph[own->second].kind != TypeKind::Forward) {
      return complain("D_DECL_TYPERED", spec.at,
                      fmt::format("type redeclared: {}", types_.name(own->second)));
    }
    // Its own members may point at it.
    forward = own != tags_.end() ? own->second
                                 : graph.add({.kind = TypeKind::Forward, .name = *spec.name});
    tags_[{kind, *spec.name}] = *forward;
  }
  Layout layout;
  layout.is_union = kind == TypeKind::Union;
  for (Declaration* member : *spec.members) {
    const TypeId base = TRY(spec_type(*member->spec));
    if (member->declarators.empty()) {
      const Declarator anonymous{.at = member->at, .name = nullptr, .derivations = {}};
      TRY(add_member(layout, anonymous, base));
    }
    for (const Declarator* declarator : member->declarators) {
      TRY(add_member(layout, *declarator, TRY(apply(base, *declarator))));
    }
  }
  const std::uint64_t bytes = (std::max(layout.size, layout.bits) + 7) / 8;
  const std::uint64_t size = (bytes + layout.align - 1) / layout.align * layout.align;
  const std::string_view name = spec.name != nullptr ? std::string_view(*spec.name) : "";
  const TypeId made = graph.add_struct(kind, name, size, layout.members);
  if (!forward) return made;
  graph.replace(*forward, Type(graph[made]));
  return *forward;
}

std::uint64_t Resolver::alignment(TypeId type, int depth) const {
  const Type& is = types_.at(type);
  if (is.kind == TypeKind::Array) return depth < 32 ? alignment(is.target, depth + 1) : 1;
  if (is.kind == TypeKind::Struct || is.kind == TypeKind::Union) {
    std::uint64_t most = 1;
    if (depth >= 32) return most;
    for (const Member& member : types_.graph().members(types_.graph().resolve(type))) {
      most = std::max(most, alignment(member.type, depth + 1));
    }
    return most;
  }
  return std::clamp<std::uint64_t>(types_.size(type), 1, 16);
}

Checked<void> Resolver::add_member(Layout& layout, const Declarator& declarator, TypeId type) {
  constexpr std::uint64_t kMaxBits = std::uint64_t{8} << 28;  // offsets are 32 bits
  const std::uint64_t size = types_.size(type);
  if (size == 0 && !types_.is_array(type)) {
    return complain("D_DECL_INCOMPLETE", declarator.at,
                    fmt::format("member has an incomplete type: {}", types_.name(type)));
  }
  const std::uint64_t align = alignment(type) * 8;
  std::uint64_t width = size * 8;
  Member member{.name = declarator.name != nullptr ? *declarator.name : std::string_view(),
                .type = type};
  std::uint64_t at = layout.is_union ? 0 : layout.bits;
  if (declarator.bit_width != nullptr) {
    const std::int64_t bits = TRY(constant(declarator.bit_width, "bit-field size"));
    if (!types_.is_integer(type)) {
      return complain("D_DECL_BFTYPE", declarator.at, "invalid type for a bit-field");
    }
    if (bits < 0 || static_cast<std::uint64_t>(bits) > width || (bits == 0 && declarator.name)) {
      return complain("D_DECL_BFSIZE", declarator.at,
                      fmt::format("invalid bit-field size {}", bits));
    }
    const bool straddles =
        bits == 0 || at / align != (at + static_cast<std::uint64_t>(bits) - 1) / align;
    width = static_cast<std::uint64_t>(bits);
    if (straddles) at = (at + align - 1) / align * align;
    member.bit_width = static_cast<std::uint32_t>(bits);
  } else {
    at = (at + align - 1) / align * align;
    if (declarator.name == nullptr && !types_.is_struct(type)) {
      return complain("D_DECL_USELESS", declarator.at, "member has no name");
    }
  }
  if (width > kMaxBits || at > kMaxBits - width) {
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
  std::int64_t next = 0;
  for (const EnumeratorSpec& enumerator : *spec.enumerators) {
    if (enumerator.value != nullptr) next = TRY(constant(enumerator.value, "enumerator value"));
    if (next < INT32_MIN || next > INT32_MAX) {
      return complain("D_DECL_ENOFLOW", enumerator.at,
                      fmt::format("enumerator value overflows: {}", *enumerator.name));
    }
    if (enumerators_.contains(*enumerator.name)) {
      return complain("D_DECL_IDRED", enumerator.at,
                      fmt::format("identifier redeclared: {}", *enumerator.name));
    }
    values.push_back({*enumerator.name, next});
    enumerators_.emplace(*enumerator.name, std::pair(types_.int32, next));
    ++next;
  }
  const std::string_view name = spec.name != nullptr ? std::string_view(*spec.name) : "";
  const TypeId made = types_.graph().add_enum(name, 4, true, values);
  for (const Enumerator& value : values) enumerators_[std::string(value.name)].first = made;
  if (spec.name != nullptr) tags_[{TypeKind::Enum, *spec.name}] = made;
  return made;
}

Checked<TypeId> Resolver::function_type(TypeId result, const Derivation& step) {
  std::vector<Parameter> parameters;
  if (step.parameters != nullptr) {
    for (Declaration* parameter : *step.parameters) {
      const TypeId type = TRY(type_name(*parameter));
      const bool only_void = types_.is_void(type) && step.parameters->size() == 1;
      if (types_.is_void(type) && !only_void) {
        return complain("D_DECL_PROTO_VOID", parameter->at, "void must be the sole parameter");
      }
      if (!only_void) parameters.push_back({{}, types_.decay(type)});
    }
  }
  return types_.graph().add_function(result, parameters, step.variadic);
}

/// Applies the derivations from the base type towards the name. The keys of an associative array
/// come next to the name, and are the caller's to read.
Checked<TypeId> Resolver::apply(TypeId base, const Declarator& declarator, bool keys_allowed) {
  TypeGraph& graph = types_.graph();
  for (std::size_t i = declarator.derivations.size(); i-- > 0;) {
    const Derivation& step = declarator.derivations[i];
    if (step.kind == Derivation::Kind::Pointer) {
      base = graph.pointer_to(base);
    } else if (step.kind == Derivation::Kind::Function) {
      base = TRY(function_type(base, step));
    } else if (step.kind == Derivation::Kind::Keys) {
      if (!keys_allowed || i != 0) {
        return complain("D_DECL_DYNOBJ", declarator.at, "associative array is not allowed here");
      }
    } else {
      if (types_.is_void(base)) {
        return complain("D_DECL_VOIDOBJ", declarator.at, "array of void is not possible");
      }
      const std::int64_t count =
          step.count != nullptr ? TRY(constant(step.count, "array size")) : 0;
      if (count < 0 || count > INT32_MAX || (step.count != nullptr && count == 0)) {
        return complain("D_DECL_ARRNULL", declarator.at,
                        fmt::format("invalid array size {}", count));
      }
      const std::uint64_t size = types_.size(base);
      if (size != 0 && static_cast<std::uint64_t>(count) > (std::uint64_t{1} << 28) / size) {
        return complain("D_DECL_ARRBIG", declarator.at, "array is too large");
      }
      base = graph.array_of(base, static_cast<std::uint32_t>(count));
    }
  }
  return base;
}

Checked<TypeId> Resolver::type_name(Declaration& declaration) {
  const TypeId base = TRY(spec_type(*declaration.spec));
  return apply(base, *declaration.declarators.front());
}

Checked<void> Resolver::declare(const Declaration& declaration) {
  TypeSpec& spec = *declaration.spec;
  const TypeId base = TRY(spec_type(spec));
  for (const Declarator* declarator : declaration.declarators) {
    if (spec.storage == Storage::Typedef) {
      const TypeId target = TRY(apply(base, *declarator));
      const auto [at, fresh] = typedefs_.emplace(*declarator->name, TypeId{});
      if (!fresh && !types_.same(at->second, target)) {
        return complain("D_DECL_IDRED", declarator->at,
                        fmt::format("identifier redeclared: {}", *declarator->name));
      }
      at->second = types_.graph().add(
          {.kind = TypeKind::Typedef, .name = *declarator->name, .target = target});
    } else {
      TRY(declare_variable(spec, *declarator, base));
    }
  }
  return {};
}

Checked<void> Resolver::declare_variable(const TypeSpec& spec, const Declarator& declarator,
                                         TypeId base) {
  if (spec.storage == Storage::Auto || spec.storage == Storage::Static ||
      spec.storage == Storage::Register) {
    return complain("D_DECL_BADCLASS", declarator.at,
                    "specified storage class not appropriate in D");
  }
  const TypeId type = TRY(apply(base, declarator, true));
  if (types_.kind(type) == TypeKind::Function) return {};  // a prototype: nothing in D calls it
  if (types_.is_void(type)) {
    return complain("D_DECL_VOIDOBJ", declarator.at,
                    fmt::format("cannot have void variable: {}", *declarator.name));
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
                      fmt::format("cannot define associative array as a clause-local variable: {}",
                                  *declarator.name));
    }
    for (Declaration* key : *declarator.derivations.front().parameters) {
      keys.push_back(types_.decay(TRY(type_name(*key))));
    }
  }
  if (find(scope, *declarator.name) != nullptr ||
      (scope == Scope::Global && dif::find_builtin(*declarator.name))) {
    const Symbol* known = find(scope, *declarator.name);
    if (known != nullptr && types_.same(known->type, type) && known->keys.size() == keys.size()) {
      return {};
    }
    return complain("D_DECL_IDRED", declarator.at,
                    fmt::format("identifier redeclared: {}", *declarator.name));
  }
  if (!types_.value_type(type)) {
    return complain(
        "D_DECL_INCOMPLETE", declarator.at,
        fmt::format("cannot have a variable of type {}: {}", types_.name(type), *declarator.name));
  }
  Symbol* symbol = add_variable(scope, *declarator.name);
  symbol->type = type;
  symbol->is_associative = associative;
  symbol->keys = std::move(keys);
  symbol->is_extern = spec.storage == Storage::Extern;
  return {};
}

Checked<void> Resolver::define_inline(const InlineNode& node) {
  const auto& derivations = node.declarator->derivations;
  if (!derivations.empty() && derivations.front().kind == Derivation::Kind::Keys) {
    return complain("D_UNKNOWN", node.at, "an inline with parameters is not supported yet");
  }
  const TypeId base = TRY(spec_type(*node.spec));
  const TypeId type = TRY(apply(base, *node.declarator));
  const std::string& name = *node.declarator->name;
  if (find(Scope::Global, name) != nullptr || dif::find_builtin(name)) {
    return complain("D_DECL_IDRED", node.declarator->at,
                    fmt::format("identifier redeclared: {}", name));
  }
  Symbol symbol;
  symbol.kind = Symbol::Kind::Inline;
  symbol.name = name;
  symbol.type = type;
  symbol.value = node.value;
  symbols_.push_back(std::move(symbol));
  scopes_[0].emplace(name, &symbols_.back());
  return {};
}

}  // namespace ringside::d
