// The types that a Program carries for the consumer (TypeShape), made from a type graph. The
// compiler makes them from its own graph, bind() from a kernel's. A shape has only the name of the
// type that a pointer points at, so every shape is finite.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "dif/program/program.h"
#include "vmm/base/c_type.h"

namespace ringside::dif {

class ShapeTable {
 public:
  /// Appends to `shapes`. `string_size` is strsize, the size of every D string.
  ShapeTable(const TypeGraph& graph, std::uint32_t string_size, std::vector<TypeShape>& shapes)
      : graph_(graph), string_size_(string_size), shapes_(shapes) {}

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
  bool fill(TypeShape& shape, TypeId resolved, unsigned depth);

  const TypeGraph& graph_;
  const std::uint32_t string_size_;
  std::vector<TypeShape>& shapes_;
  std::unordered_map<std::uint32_t, std::uint32_t> known_, leaves_;
  unsigned left_ = kMostNew;
};

}  // namespace ringside::dif
