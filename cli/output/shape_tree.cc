#include "cli/output/shape_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "cli/output/pretty_print.h"

namespace ringside::cli {
namespace {

using dif::TypeShape;
using ShapeKind = TypeShape::Kind;

Tree number_of_shape(std::uint64_t bits, bool is_signed) {
  if (is_signed) return static_cast<std::int64_t>(bits);
  return bits;
}

/// Trees of values whose types have shapes. Values that were not recorded are null.
class ShapeTree {
 public:
  explicit ShapeTree(const std::vector<TypeShape>& shapes) : shapes_(shapes) {}

  Tree value(const TypeShape& shape, Bytes bytes, std::uint32_t bit_offset, std::uint32_t bit_width,
             unsigned depth) const {
    switch (shape.kind) {
      case ShapeKind::Struct:
      case ShapeKind::Union: return members(shape, bytes, depth);
      case ShapeKind::Array: return array(shape, bytes, depth);
      case ShapeKind::String: return valid_utf8(text_value(bytes));
      case ShapeKind::Float: return real(shape, bytes);
      case ShapeKind::Void:
      case ShapeKind::Function: return nullptr;
      case ShapeKind::Integer:
      case ShapeKind::Pointer:
      case ShapeKind::Enum: break;
    }
    if (const auto wide = read_wide(shape, bytes, bit_width)) {
      const auto [low, high] = *wide;
      const bool is_negative = shape.is_signed && low >> 63 != 0;
      if (high == (is_negative ? ~std::uint64_t{0} : 0))
        return number_of_shape(low, shape.is_signed);
      return int128_text(*wide);  // JSON's readers lose the digits of such numbers
    }
    std::uint64_t bits = 0;
    if (!read_scalar(shape, bytes, bit_offset, bit_width, bits)) return nullptr;
    if (shape.kind == ShapeKind::Pointer) return fmt::format("0x{:x}", bits);
    if (shape.kind == ShapeKind::Enum) {
      for (const auto& [name, known] : shape.enumerators) {
        if (static_cast<std::uint64_t>(known) == bits) return name;
      }
    }
    return number_of_shape(bits, shape.is_signed);
  }

 private:
  static Tree real(const TypeShape& shape, Bytes bytes) {
    if (bytes.size() < shape.size) return nullptr;
    if (shape.size == 16) {
      constexpr std::size_t kExtendedBytes = 10;  // the rest is padding
      long double number = 0;
      std::memcpy(&number, bytes.data(), kExtendedBytes);
      return static_cast<double>(number);
    }
    if (shape.size == 8) return __builtin_bit_cast(double, unsigned_value(bytes.first(8)));
    if (shape.size != 4) return nullptr;
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(unsigned_value(bytes.first(4))));
  }

  Tree array(const TypeShape& shape, Bytes bytes, unsigned depth) const {
    if (shape.element >= shapes_.size() || depth >= kDeepestShape) return nullptr;
    const TypeShape& each = shapes_[shape.element];
    if (is_character(each)) {
      return valid_utf8(text_value(bytes.first(std::min<std::size_t>(bytes.size(), shape.count))));
    }
    Tree list = Tree::array();
    for (std::uint32_t i = 0; i < shape.count && each.size != 0; ++i) {
      const std::size_t at = std::size_t{i} * each.size;
      if (at >= bytes.size()) break;
      const std::size_t size = std::min<std::size_t>(each.size, bytes.size() - at);
      list.push_back(value(each, bytes.subspan(at, size), 0, 0, depth + 1));
    }
    return list;
  }

  Tree members(const TypeShape& shape, Bytes bytes, unsigned depth) const {
    if (depth >= kDeepestShape) return nullptr;
    Tree fields = Tree::object();
    for (const TypeShape::Member& member : shape.members) {
      if (member.shape >= shapes_.size()) continue;
      const std::size_t at = std::min<std::size_t>(member.bit_offset / 8, bytes.size());
      Tree field = value(shapes_[member.shape], bytes.subspan(at), member.bit_offset % 8,
                         member.bit_width, depth + 1);
      if (!member.name.empty()) {
        fields[member.name] = std::move(field);
      } else if (field.is_object()) {  // an anonymous member's names are the outer one's, as in C
        for (auto& [name, inner] : field.items()) fields[name] = inner;
      }
    }
    return fields;
  }

  const std::vector<TypeShape>& shapes_;
};

}  // namespace

Tree shape_tree(const std::vector<dif::TypeShape>& shapes, std::uint32_t shape, Bytes bytes,
                std::uint32_t bit_offset, std::uint32_t bit_width) {
  return ShapeTree(shapes).value(shapes[shape], bytes, bit_offset, bit_width, 0);
}

}  // namespace ringside::cli
