// DWARF's types of a program as types of a TypeGraph (DWARF 5, chapter 5). Pointers and references
// are pointers into a process's address space. Names go into no index: the kernel's `struct file`
// stays what it is.
// C is exact. C++: a base class is a member that has the class's name; virtual base classes and
// static members are left out. Rust: an enum's variants are members of an anonymous union.
// Hostile input: entries may refer to each other in any way. Each becomes one type, without
// recursion; what has no meaning becomes void, or a structure without members.
// Used by DwarfTypes.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "vmm/base/c_type.h"
#include "vmm/linux/processes/argument_places.h"

namespace ringside::guest_linux {

/// The entry that this attribute refers to; empty: there is none, or it is in a file that is not
/// there.
std::optional<Dwarf_Die> dwarf_reference(Dwarf_Die& die, unsigned attribute);
/// A constant; empty: it is not there, or is none.
std::optional<std::uint64_t> dwarf_number(Dwarf_Die& die, unsigned attribute);
bool dwarf_flag(Dwarf_Die& die, unsigned attribute);
/// Printable, of 512 characters at most; empty: it has none.
std::string dwarf_name(Dwarf_Die& die, unsigned attribute);

class DwarfTypeReader {
 public:
  /// Types and members that one file may have.
  static constexpr std::size_t kMostTypes = 200'000, kMostParts = 1'000'000;
  static constexpr std::uint64_t kMostChildren = 16 << 20;

  explicit DwarfTypeReader(TypeGraph& graph) : graph_(graph) {}
  DwarfTypeReader(const DwarfTypeReader&) = delete;
  DwarfTypeReader& operator=(const DwarfTypeReader&) = delete;

  TypeGraph& graph() { return graph_; }
  /// The type of an entry, whose members may be missing until complete().
  TypeId type_of(Dwarf_Die die);
  /// The type that the entry's DW_AT_type says; void without one.
  TypeId type_at(Dwarf_Die& die);
  /// Reads all that type_of() has met. False: the file has more types than kMostTypes, or members
  /// than kMostParts; some stay without members.
  bool complete();
  const TypeTraitsMap& traits() const { return traits_; }

 private:
  struct Pending {
    Dwarf_Die die;
    TypeId id;
  };
  struct Fields {
    TypeId id;
    Type type;
    std::vector<Member> members;
  };

  TypeId pointer(Dwarf_Die& die, unsigned depth);
  TypeId nested_type_of(Dwarf_Die die, unsigned depth);
  TypeId base_type(Dwarf_Die& die);
  TypeId complex_type(Dwarf_Die& die);
  TypeId opaque(Dwarf_Die& die);
  void fill(const Pending& pending);
  void fill_struct(Dwarf_Die& die, TypeId id, TypeKind kind);
  void add_part_of_struct(Dwarf_Die& part, Dwarf_Die& owner, Fields& fields);
  void add_member(Dwarf_Die& die, const std::string& name, std::vector<Member>& members);
  void add_variants(Dwarf_Die& die, Fields& fields);
  void note_special_function(Dwarf_Die& function, Dwarf_Die& owner, TypeId id);
  void decide_passing(TypeId id, TypeTraits::Passing passing);
  void fill_enum(Dwarf_Die& die, TypeId id);
  void fill_array(Dwarf_Die& die, TypeId id);
  void fill_function(Dwarf_Die& die, TypeId id);
  void commit(Fields fields);
  bool take_part();

  TypeGraph& graph_;
  std::unordered_map<void*, TypeId> ids_;  // by where the entry is in memory
  std::vector<Pending> pending_;
  std::vector<Fields> fields_;  // of structures whose members' sizes are not known yet
  TypeTraitsMap traits_;
  std::size_t parts_ = 0;                   // members, enumerators and parameters
  std::uint64_t children_ = kMostChildren;  // that may still be looked at
  bool is_full_ = false;
};

}  // namespace ringside::guest_linux
