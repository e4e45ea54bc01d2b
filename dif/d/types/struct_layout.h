// The layout of a structure or union that the program declares: C's on amd64.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "dif/d/syntax/ast.h"
#include "dif/d/syntax/diagnostic.h"
#include "dif/d/types/types.h"

namespace ringside::d {

/// Alignment in bytes, a power of two. Remembers that of structures, which is their members'
/// largest.
class Alignments {
 public:
  explicit Alignments(const Types& types) : types_(types) {}
  std::uint64_t of(TypeId type) { return of(type, 0); }

 private:
  std::uint64_t of(TypeId type, int depth);

  const Types& types_;
  std::unordered_map<std::uint32_t, std::uint64_t> known_;
};

class StructLayout {
 public:
  /// `kind`: Struct or Union.
  StructLayout(TypeKind kind, const Types& types, Alignments& alignments)
      : types_(types), alignments_(alignments), is_union_(kind == TypeKind::Union) {}

  /// Whether the next member can be one.
  Checked<void> check(const Declarator& declarator, TypeId type);
  /// Places it. `bits`: the width of a bit-field; a width of 0 ends the unit.
  Checked<void> place(const Declarator& declarator, TypeId type, std::optional<std::int64_t> bits);

  const std::vector<Member>& members() const { return members_; }
  /// In bytes, rounded up to the alignment.
  std::uint64_t size() const;

 private:
  Checked<void> check_bit_field(const Declarator& declarator, TypeId type, std::int64_t bits) const;
  std::uint64_t after_bit_field(TypeId type, std::uint64_t at, std::int64_t bits);
  bool take_names(TypeId type, int depth = 0);

  const Types& types_;
  Alignments& alignments_;
  bool is_union_;
  std::vector<Member> members_;
  std::unordered_set<std::string> names_;  // also those of anonymous members' members
  std::uint64_t bits_ = 0, size_ = 0, align_ = 1;
};

}  // namespace ringside::d
