// Where arguments of a function arrive: the System V x86-64 ABI (version 1.0, section 3.2.3) with
// the C++ ABI's classes that are passed by reference (Itanium C++ ABI, section 3.1.2.3). Rust's own
// convention is not written down; this is what all its versions do so far.
// Hostile input: types may be anything; walks are bounded. Used by DwarfTypes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "vmm/base/c_type.h"

namespace ringside::guest_linux {

/// Facts about a type that its shape in the graph does not tell.
struct TypeTraits {
  enum class Passing : std::uint8_t { ByShape, ByValue, ByReference, Unknown };
  Passing passing = Passing::ByShape;
  bool is_opaque = false;  // of its shape only the size is known
  bool is_vector = false;  // an array that a vector register holds
  std::uint64_t alignment = 0;
};
using TypeTraitsMap = std::unordered_map<std::uint32_t, TypeTraits>;  // by TypeId

struct ArgumentPlace {
  /// 0 to 5: rdi, rsi, rdx, rcx, r8, r9; from 6 on: words on the stack above the return address.
  /// Empty: it is in an SSE register, in two registers, a structure in memory, or nobody knows.
  std::optional<unsigned> place;
  /// The place holds the argument's address.
  bool is_by_reference = false;
};

enum class CallingRules : std::uint8_t { SystemV, Rust };

std::vector<ArgumentPlace> argument_places(const TypeGraph& graph, const TypeTraitsMap& traits,
                                           CallingRules rules, TypeId result,
                                           std::span<const TypeId> arguments);

}  // namespace ringside::guest_linux
