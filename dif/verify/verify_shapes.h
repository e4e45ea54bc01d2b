// The verifier's rules for type shapes: the parts that a consumer walks when it prints a value must
// exist, lie inside the value, and end. Used by verify_program.cc.
#pragma once

#include "dif/program/program.h"
#include "vmm/base/result.h"

namespace ringside::dif {

/// Shapes whose value has parts: arrays, structs, unions.
constexpr bool is_aggregate_shape(TypeShape::Kind kind) {
  return kind == TypeShape::Kind::Array || kind == TypeShape::Kind::Struct ||
         kind == TypeShape::Kind::Union;
}

/// Every index of every shape; and for the shapes that actions print: parts do not contain
/// themselves, and one value has at most kMostParts.
Result<void> verify_shapes(const Program& program);
inline constexpr std::uint64_t kMostParts = 2 << 20;
inline constexpr unsigned kDeepestShape = 64;

}  // namespace ringside::dif
