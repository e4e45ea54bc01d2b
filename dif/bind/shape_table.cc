#include "dif/bind/shape_table.h"

#include "dif/bind/c_types.h"

namespace ringside::dif {
namespace {

using ShapeKind = TypeShape::Kind;

ShapeKind shape_kind(TypeKind kind) {
  switch (kind) {
    case TypeKind::Integer: return ShapeKind::Integer;
    case TypeKind::Float: return ShapeKind::Float;
    case TypeKind::Pointer: return ShapeKind::Pointer;
    case TypeKind::Array: return ShapeKind::Array;
    case TypeKind::Struct: return ShapeKind::Struct;
    case TypeKind::Union: return ShapeKind::Union;
    case TypeKind::Enum: return ShapeKind::Enum;
    case TypeKind::Function: return ShapeKind::Function;
    case TypeKind::String: return ShapeKind::String;
    default: return ShapeKind::Void;
  }
}

}  // namespace

/// The type that a pointer points at: its name, and its kind when that takes no more shapes.
std::optional<std::uint32_t> ShapeTable::leaf(TypeId id) {
  if (const auto at = leaves_.find(id.value); at != leaves_.end()) return at->second;
  if (left_-- == 0) return std::nullopt;
  const TypeId resolved = graph_.resolve(id);
  const Type& type = graph_[resolved];
  TypeShape shape;
  shape.name = graph_.to_string(id);
  if (type.kind == TypeKind::Integer || type.kind == TypeKind::Function) {
    shape.kind = shape_kind(type.kind);
    shape.size = type.size;
    shape.is_signed = type.is_signed;
    shape.is_char = is_character(graph_, resolved);
  }
  const auto index = static_cast<std::uint32_t>(shapes_.size());
  shapes_.push_back(std::move(shape));
  leaves_.emplace(id.value, index);
  return index;
}

bool ShapeTable::fill(TypeShape& shape, TypeId resolved, unsigned depth) {
  const Type type = graph_[resolved];
  if (type.kind == TypeKind::Pointer || type.kind == TypeKind::Array) {
    const auto element =
        type.kind == TypeKind::Pointer ? leaf(type.target) : add(type.target, depth + 1);
    if (!element) return false;
    shape.element = *element;
    shape.count = type.count;
  }
  if (type.kind == TypeKind::Enum) {
    for (const Enumerator& e : graph_.enumerators(resolved)) {
      shape.enumerators.emplace_back(e.name, e.value);
    }
  }
  if (type.kind != TypeKind::Struct && type.kind != TypeKind::Union) return true;
  for (const Member& member : graph_.members(resolved)) {
    const auto part = add(member.type, depth + 1);
    if (!part) return false;
    shape.members.push_back({std::string(member.name), *part, member.bit_offset, member.bit_width});
  }
  return true;
}

std::optional<std::uint32_t> ShapeTable::add(TypeId id, unsigned depth) {
  if (const auto at = known_.find(id.value); at != known_.end()) return at->second;
  if (depth > kDeepest || left_ == 0) return std::nullopt;
  --left_;
  const TypeId resolved = graph_.resolve(id);
  const Type& type = graph_[resolved];
  TypeShape shape;
  shape.kind = shape_kind(type.kind);
  shape.name = graph_.to_string(id);
  shape.size = value_size(graph_, id, string_size_);
  shape.is_signed = type.is_signed;
  shape.is_char = is_character(graph_, resolved);
  if (!fill(shape, resolved, depth)) return std::nullopt;
  const auto index = static_cast<std::uint32_t>(shapes_.size());
  shapes_.push_back(std::move(shape));
  known_.emplace(id.value, index);
  return index;
}

}  // namespace ringside::dif
