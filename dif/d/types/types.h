// C types as D's rules see them: classes, sizes, promotions, compatibility, and how a value of
// a type travels through DIF. A thin view of a TypeGraph; adds nothing to it but pointers.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "dif/program/program.h"
#include "vmm/base/c_type.h"

namespace ringside::d {

class Types {
 public:
  /// `string_size` is strsize, the size of every `string`.
  Types(TypeGraph& graph, std::uint32_t string_size);

  TypeGraph& graph() const { return graph_; }
  const Type& at(TypeId id) const { return graph_[graph_.resolve(id)]; }
  TypeKind kind(TypeId id) const { return at(id).kind; }
  std::string name(TypeId id) const;

  bool is_integer(TypeId id) const;  // integers of 1, 2, 4 or 8 bytes, and enums
  bool is_signed(TypeId id) const { return at(id).is_signed; }
  bool is_pointer(TypeId id) const { return kind(id) == TypeKind::Pointer; }
  bool is_scalar(TypeId id) const { return is_integer(id) || is_pointer(id); }
  bool is_struct(TypeId id) const;  // or a union
  bool is_array(TypeId id) const { return kind(id) == TypeKind::Array; }
  bool is_string(TypeId id) const { return kind(id) == TypeKind::String; }
  bool is_void(TypeId id) const { return kind(id) == TypeKind::Void; }
  bool is_character(TypeId id) const;
  /// string, char *, char []: the types that can be used where a string is wanted.
  bool is_string_like(TypeId id) const;
  bool is_float(TypeId id) const { return kind(id) == TypeKind::Float; }
  /// Values of the type are handled by address: strings, structs, arrays, and floating-point ones,
  /// with which nothing is computed.
  bool by_reference(TypeId id) const {
    return is_string(id) || is_struct(id) || is_array(id) || is_float(id);
  }

  bool is_function(TypeId id) const { return kind(id) == TypeKind::Function; }

  /// Whether what has this type lies in the address space of the process.
  bool is_userland(TypeId id) const { return graph_.is_userland(id); }
  /// Whether its value is an address there.
  bool is_user_pointer(TypeId id) const { return is_pointer(id) && is_userland(referent(id)); }
  /// `id` as what lies there. A pointer that is read there is an address of that space, too.
  TypeId userland(TypeId id) const;

  /// Takes note that what is compiled contains how a structure or enum is laid out.
  void use_layout(TypeId id) const;
  /// Notes that the program declares or casts with the name of a number's type.
  void use_typedef(TypeId id) const;
  /// The types whose layout was used since forget_layouts(), in the order of their ids.
  const std::set<TypeId>& used_layouts() const { return used_layouts_; }
  void forget_layouts() { used_layouts_.clear(); }

  /// Bytes; 0 when incomplete. A string has strsize bytes. A use of the layout.
  std::uint64_t size(TypeId id) const;
  /// The same, if the caller names the size for other kernels (kernel_namer.h) or compiles nothing
  /// with it.
  std::uint64_t measure(TypeId id) const;
  /// The type of an array used as a value: a pointer to its elements.
  TypeId decay(TypeId id) const;
  /// The type of what lies where a pointer points.
  TypeId pointed(TypeId pointer) const;
  /// The type that a pointer or array points at.
  TypeId referent(TypeId id) const { return at(id).target; }
  /// Whether no member of the structure or union begins after this one of its own.
  bool is_last(TypeId structure, const FoundMember& member) const;
  /// The type of -x, ~x and x << n: that of x, but an enumeration counts as an int.
  TypeId arithmetic(TypeId id) const;
  /// The type of x + y: the wider type, or the unsigned one if both have the same width. Unlike in
  /// C, types smaller than int stay small; values are 64 bits wide whatever their type is.
  TypeId arithmetic(TypeId a, TypeId b) const;
  /// Whether (to)x cuts the value of an x of scalar type `from`: to fewer bits, or to as many with
  /// another sign. Other casts only name another type.
  bool cast_cuts(TypeId from, TypeId to) const;
  /// Whether a D variable of type `to` cuts a value of type `from` that is stored in it. A value of
  /// 8 bytes is kept whole where the variable has 4: scripts have `int last; last = timestamp;`.
  bool store_cuts(TypeId from, TypeId to) const;
  std::uint64_t cast(TypeId from, TypeId to, std::uint64_t value) const {
    return cast_cuts(from, to) ? wrap(to, value) : value;
  }
  /// The same type, though the guest's type information may describe it twice.
  bool same(TypeId a, TypeId b) const;
  /// Pointers (or arrays) that may be assigned and compared: the same referent, or void.
  bool pointers_agree(TypeId a, TypeId b) const;
  /// The bits of `value` as a register holds a value of integer type `id`.
  std::uint64_t wrap(TypeId id, std::uint64_t value) const;

  /// For a message about a name that no member of the structure or union has: the members, if they
  /// are few, and the nearest one, which may be a member of a member. Empty, or begins with "; ".
  std::string suggest_member(TypeId structure, std::string_view name) const;

  /// Empty for void, functions and incomplete types. The caller must name the type whose size it
  /// contains.
  std::optional<dif::ValueType> value_type(TypeId id) const;

  TypeId named(std::string_view plain) const { return graph_.find(plain).value_or(TypeId{}); }
  TypeId int32, uint32, int64, uint64, uint16, string, void_pointer;

 private:
  TypeGraph& graph_;
  std::uint32_t string_size_;
  mutable std::set<TypeId> used_layouts_;  // asking for a size changes nothing else
};

/// Extends the low `size` bytes (1, 2, 4; 8 changes nothing) to 64 bits.
std::uint64_t extend(std::uint64_t value, std::uint64_t size, bool is_signed);

}  // namespace ringside::d
