#include "dif/d/resolve/shapes.h"

namespace ringside::d {
namespace {

using Kind = dif::TypeShape::Kind;

Kind shape_kind(TypeKind kind) {
  switch (kind) {
    case TypeKind::Integer: return Kind::Integer;
    case TypeKind::Float: return Kind::Float;
    case TypeKind::Pointer: return Kind::Pointer;
    case TypeKind::Array: return Kind::Array;
    case TypeKind::Struct: return Kind::Struct;
    case TypeKind::Union: return Kind::Union;
    case TypeKind::Enum: return Kind::Enum;
    case TypeKind::Function: return Kind::Function;
    case TypeKind::String: return Kind::String;
    default: return Kind::Void;
  }
}

}  // namespace

/// What a pointer points at: its name, and what it is when that takes no more shapes.
std::optional<std::uint32_t> ShapeTable::leaf(TypeId id) {
  if (const auto at = leaves_.find(id.value); at != leaves_.end()) return at->second;
  if (left_-- == 0) return std::nullopt;
  const TypeId resolved = types_.graph().resolve(id);
  const Type& type = types_.graph()[resolved];
  dif::TypeShape shape;
  shape.name = types_.name(id);
  if (type.kind == TypeKind::Integer || type.kind == TypeKind::Function) {
    shape.kind = shape_kind(type.kind);
    shape.size = type.size;
    shape.is_signed = type.is_signed;
    shape.is_char = types_.is_character(resolved);
  }
  const auto index = static_cast<std::uint32_t>(program_.shapes.size());
  program_.shapes.push_back(std::move(shape));
  leaves_.emplace(id.value, index);
  return index;
}

bool ShapeTable::fill(dif::TypeShape& shape, TypeId resolved, unsigned depth) {
  const Type type = types_.graph()[resolved];
  if (type.kind == TypeKind::Pointer || type.kind == TypeKind::Array) {
    const auto element =
        type.kind == TypeKind::Pointer ? leaf(type.target) : add(type.target, depth + 1);
    if (!element) return false;
    shape.element = *element;
    shape.count = type.count;
  }
  if (type.kind == TypeKind::Enum) {
    for (const Enumerator& e : types_.graph().enumerators(resolved)) {
      shape.enumerators.emplace_back(e.name, e.value);
    }
  }
  if (type.kind != TypeKind::Struct && type.kind != TypeKind::Union) return true;
  for (const Member& member : types_.graph().members(resolved)) {
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
  const TypeId resolved = types_.graph().resolve(id);
  const Type& type = types_.graph()[resolved];
  dif::TypeShape shape;
  shape.kind = shape_kind(type.kind);
  shape.name = types_.name(id);
  shape.size = types_.size(id);
  shape.is_signed = type.is_signed;
  shape.is_char = types_.is_character(resolved);
  if (!fill(shape, resolved, depth)) return std::nullopt;
  const auto index = static_cast<std::uint32_t>(program_.shapes.size());
  program_.shapes.push_back(std::move(shape));
  known_.emplace(id.value, index);
  return index;
}

}  // namespace ringside::d
