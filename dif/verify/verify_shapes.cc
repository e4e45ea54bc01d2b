#include "dif/verify/verify_shapes.h"

#include <fmt/format.h>

#include <algorithm>

namespace ringside::dif {

namespace {

tl::unexpected<Error> refuse(std::size_t shape, std::string_view why) {
  return fail(ErrorCode::Invalid, fmt::format("shape {} {}", shape, why));
}

Result<void> check_members(const Program& program, std::size_t index) {
  const TypeShape& shape = program.shapes[index];
  for (const TypeShape::Member& member : shape.members) {
    if (member.shape >= program.shapes.size()) return refuse(index, "has a member of no shape");
    const std::uint64_t bits = member.bit_width;
    const std::uint64_t bytes = bits != 0 ? 0 : program.shapes[member.shape].size;
    const bool inside = bytes <= shape.size &&
                        (member.bit_offset + std::uint64_t{7}) / 8 <= shape.size - bytes &&
                        (member.bit_offset + bits + 7) / 8 <= shape.size;
    if (bits > 64 || !inside) return refuse(index, "has a member that lies outside it");
  }
  return {};
}

Result<void> check_shape(const Program& program, std::size_t index) {
  const TypeShape& shape = program.shapes[index];
  switch (shape.kind) {
    case TypeShape::Kind::Pointer:
      if (shape.element >= program.shapes.size()) return refuse(index, "points at no shape");
      return {};
    case TypeShape::Kind::Array: {
      if (shape.element >= program.shapes.size()) return refuse(index, "is made of no shape");
      const std::uint64_t each = program.shapes[shape.element].size;
      if (shape.count != 0 && each > shape.size / shape.count) {
        return refuse(index, "has elements that lie outside it");
      }
      return {};
    }
    case TypeShape::Kind::Struct:
    case TypeShape::Kind::Union: return check_members(program, index);
    case TypeShape::Kind::Void:
    case TypeShape::Kind::Integer:
    case TypeShape::Kind::Float:
    case TypeShape::Kind::Enum:
    case TypeShape::Kind::String:
    case TypeShape::Kind::Function: return {};
  }
  return refuse(index, "has no such kind");
}

/// Counts the parts of one value of each shape, each shape once.
class PartCounter {
 public:
  explicit PartCounter(const Program& program)
      : program_(program), parts_(program.shapes.size(), kUnknown) {}

  Result<std::uint64_t> count(std::uint32_t index, unsigned depth = 0) {
    if (parts_[index] == kOpen) return refuse(index, "contains itself");
    if (parts_[index] != kUnknown) return parts_[index];
    if (depth > kDeepestShape) return refuse(index, "is nested too deep");
    const TypeShape& shape = program_.shapes[index];
    parts_[index] = kOpen;
    std::uint64_t sum = 1;
    if (shape.kind == TypeShape::Kind::Array && shape.count != 0) {
      sum += shape.count * TRY(count(shape.element, depth + 1));  // at most 2^32 * kMostParts
    }
    if (shape.kind == TypeShape::Kind::Struct || shape.kind == TypeShape::Kind::Union) {
      for (const TypeShape::Member& member : shape.members) {
        sum += TRY(count(member.shape, depth + 1));
        if (sum > kMostParts) break;
      }
    }
    if (sum > kMostParts) return refuse(index, "has more parts than can be printed");
    parts_[index] = sum;
    return sum;
  }

 private:
  static constexpr std::uint64_t kUnknown = UINT64_MAX, kOpen = UINT64_MAX - 1;
  const Program& program_;
  std::vector<std::uint64_t> parts_;
};

}  // namespace

Result<void> verify_shapes(const Program& program) {
  for (std::size_t i = 0; i < program.shapes.size(); ++i) TRY(check_shape(program, i));
  PartCounter parts(program);
  for (const Clause& clause : program.clauses) {
    for (const Action& action : clause.actions) {
      for (const std::uint32_t shape : action.shapes) {
        if (shape >= program.shapes.size()) return refuse(shape, "does not exist");
        TRY(parts.count(shape));
      }
    }
  }
  return {};
}

}  // namespace ringside::dif
