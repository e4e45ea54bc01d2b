#include "dif/bind/c_types.h"

#include <fmt/format.h>

namespace ringside::dif {

namespace {

constexpr unsigned kDeepestType = 64;  // of types in one another: hostile ones can nest without end
constexpr unsigned kMostStars = 8;

std::string_view integer_name(std::uint64_t size) {
  switch (size) {
    case 1: return "char";
    case 2: return "short";
    case 4: return "int";
    case 8: return "long";
    default: return "";
  }
}

std::string number_text(const Type& type) {
  std::string text = type.is_signed ? "" : "unsigned ";
  if (type.kind == TypeKind::Enum) text += "enum ";
  const std::string_view name = integer_name(type.size);
  return text + (name.empty() ? fmt::format("integer of {} bytes", type.size) : std::string(name));
}

std::string_view tag_word(const Type& type) {
  const bool is_union = type.kind == TypeKind::Union || type.is_union;
  return is_union ? "union" : "struct";
}

std::string text_of(const TypeGraph& graph, TypeId id, unsigned depth) {
  std::string_view alias;  // the only name that an anonymous structure has
  for (unsigned steps = 0; steps < kDeepestType; ++steps) {
    const Type& type = graph[id];
    const bool names_other = type.kind == TypeKind::Typedef || type.kind == TypeKind::Const ||
                             type.kind == TypeKind::Volatile || type.kind == TypeKind::Restrict ||
                             type.kind == TypeKind::Userland;
    if (!names_other) break;
    if (type.kind == TypeKind::Typedef) alias = type.name;
    id = type.target;
  }
  const Type& type = graph[id];
  switch (type.kind) {
    case TypeKind::Void: return "void";
    case TypeKind::Integer:
      if (depth > 0 && type.size == 1 && type.name == "char") return "char";
      [[fallthrough]];
    case TypeKind::Enum: return number_text(type);
    case TypeKind::Float: return fmt::format("float of {} bytes", type.size);
    case TypeKind::Pointer:
      return (depth < kMostStars ? text_of(graph, type.target, depth + 1) : "void") + " *";
    case TypeKind::Array:
      return (depth < kMostStars ? text_of(graph, type.target, depth + 1) : "void") + " []";
    case TypeKind::Struct:
    case TypeKind::Union:
    case TypeKind::Forward:
      if (type.name.empty() && !alias.empty()) return std::string(alias);
      return fmt::format("{} {}", tag_word(type), type.name.empty() ? "{...}" : type.name);
    case TypeKind::Function: return "function";
    case TypeKind::String: return "string";
    case TypeKind::Typedef:
    case TypeKind::Const:
    case TypeKind::Volatile:
    case TypeKind::Restrict:
    case TypeKind::Userland: break;  // a cycle
  }
  return "void";
}

}  // namespace

std::uint64_t value_size(const TypeGraph& graph, TypeId id, std::uint32_t string_size) {
  std::uint64_t count = 1;
  for (unsigned depth = 0; depth < kDeepestType; ++depth) {
    const Type& type = graph[graph.resolve(id)];
    if (type.kind == TypeKind::Array) {
      if (__builtin_mul_overflow(count, std::uint64_t{type.count}, &count)) return 0;
      id = type.target;
      continue;
    }
    const std::uint64_t element = type.kind == TypeKind::Pointer  ? 8
                                  : type.kind == TypeKind::String ? string_size
                                                                  : graph.size_of(id);
    std::uint64_t bytes = 0;
    return __builtin_mul_overflow(count, element, &bytes) ? 0 : bytes;
  }
  return 0;
}

bool is_character(const TypeGraph& graph, TypeId id) {
  const Type& type = graph[graph.resolve(id)];
  if (type.kind != TypeKind::Integer || type.size != 1) return false;
  return type.is_char || type.name.ends_with("char");  // BTF often leaves the mark out
}

TypeId defined(const TypeGraph& graph, TypeId id) {
  const TypeId resolved = graph.resolve(id);
  const Type& type = graph[resolved];
  if (type.kind != TypeKind::Forward) return resolved;
  const auto found = graph.find(type.is_union ? TypeKind::Union : TypeKind::Struct, type.name);
  return found ? graph.resolve(*found) : resolved;
}

std::string type_text(const TypeGraph& graph, TypeId id) {
  return text_of(graph, id, 0);
}

}  // namespace ringside::dif
