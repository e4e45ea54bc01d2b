// Types as a dif::Program carries them for the consumer, made from the compiler's type graph.
// What a pointer points at is known by name only, so every shape is finite.
// Fire context: no.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "dif/d/resolve/types.h"
#include "dif/program/program.h"

namespace ringside::d {

class ShapeTable {
 public:
  ShapeTable(const Types& types, dif::Program& program) : types_(types), program_(program) {}

  /// The index of the shape of a value of type `id`; empty when the type is nested too deep or has
  /// too many parts for a program to carry.
  std::optional<std::uint32_t> add(TypeId id) {
    left_ = kMostNew;
    return add(id, 0);
  }

 private:
  static constexpr unsigned kDeepest = 16;     // of structs and arrays in one another
  static constexpr unsigned kMostNew = 4'000;  // shapes that one type brings along

  std::optional<std::uint32_t> add(TypeId id, unsigned depth);
  std::optional<std::uint32_t> leaf(TypeId id);
  bool fill(dif::TypeShape& shape, TypeId resolved, unsigned depth);

  const Types& types_;
  dif::Program& program_;
  std::unordered_map<std::uint32_t, std::uint32_t> known_, leaves_;
  unsigned left_ = kMostNew;
};

}  // namespace ringside::d
