// The graph of C types that D programs see: the built-in LP64 types and those of the guest's BTF
// (vmm/linux/types/btf.h). A program's own declarations (dif/d) go into an overlay: a second graph
// on top of the kernel's. So all programs share the kernel's graph. It stores and finds types; it
// knows neither BTF's encoding nor D's rules.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "vmm/base/name_hash.h"

namespace ringside {

enum class TypeKind : std::uint8_t {
  Void,
  Integer,
  Float,
  Pointer,   // target
  Array,     // target, count
  Struct,    // members
  Union,     // members
  Enum,      // enumerators; size is the underlying integer's
  Forward,   // struct or union that was declared and never defined
  Typedef,   // target
  Const,     // target
  Volatile,  // target
  Restrict,  // target
  Userland,  // target: a qualifier as Const is, of what lies in a process's address space
  Function,  // target is the return type; parameters
  String,    // D's `string`: characters up to strsize, held by reference
};

/// Number of a type in its TypeGraph; 0 is void. A base's types have the same numbers in overlays.
struct TypeId {
  std::uint32_t value = 0;
  auto operator<=>(const TypeId&) const = default;
};

struct Type {
  TypeKind kind = TypeKind::Void;
  bool is_signed = false;      // Integer, Enum
  bool is_char = false;        // Integer: a character type
  bool is_variadic = false;    // Function
  bool is_union = false;       // Forward: of a union, else of a struct
  std::string_view name = {};  // without "struct "; empty when anonymous; owned by the graph
  std::uint64_t size = 0;      // bytes; 0 for void, functions and incomplete types
  TypeId target = {};
  std::uint32_t count = 0;   // Array: elements
  std::uint32_t first = 0;   // index of the first member, enumerator or parameter
  std::uint32_t length = 0;  // number of members, enumerators or parameters
};

struct Member {
  std::string_view name = {};  // empty for an anonymous struct or union
  TypeId type = {};
  std::uint32_t bit_offset = 0;
  std::uint32_t bit_width = 0;  // 0: not a bit-field
};

struct Enumerator {
  std::string_view name = {};
  std::int64_t value = 0;
};

struct Parameter {
  std::string_view name = {};
  TypeId type = {};
};

/// A member found by name, looking through anonymous structs and unions.
struct FoundMember {
  TypeId type = {};
  std::uint64_t bit_offset = 0;  // from the start of the outermost type
  std::uint32_t bit_width = 0;   // 0: not a bit-field
};

class TypeGraph {
 public:
  /// Holds void (id 0) and the LP64 integer, floating and D `string` types with their typedefs
  /// (int8_t ... uintptr_t, size_t, pid_t...).
  TypeGraph();
  /// An overlay: looks up in `base` what it does not have itself. `base` must outlive it and be no
  /// overlay. The base may gain types meanwhile, but not lose any.
  explicit TypeGraph(const TypeGraph* base);
  TypeGraph(const TypeGraph&) = delete;
  TypeGraph& operator=(const TypeGraph&) = delete;
  TypeGraph(TypeGraph&&) = default;
  TypeGraph& operator=(TypeGraph&&) = default;

  const Type& operator[](TypeId id) const {
    return id.value < first_ ? (*base_)[id] : types_[id.value - first_];
  }
  /// Types in all, a base's included.
  std::size_t size() const { return types_.size() + (base_ != nullptr ? base_->size() : 0); }
  /// The number that the next type will get. An overlay's own types begin at the next_id() that it
  /// had when it was made.
  TypeId next_id() const { return {first_ + static_cast<std::uint32_t>(types_.size())}; }
  std::span<const Member> members(TypeId id) const;
  std::span<const Enumerator> enumerators(TypeId id) const;
  std::span<const Parameter> parameters(TypeId id) const;

  /// Adds a type as it stands. The name is copied. Adds no name to the index.
  TypeId add(Type type);
  TypeId add_struct(TypeKind kind, std::string_view name, std::uint64_t size,
                    std::span<const Member> members);
  TypeId add_enum(std::string_view name, std::uint64_t size, bool is_signed,
                  std::span<const Enumerator> enumerators);
  TypeId add_function(TypeId result, std::span<const Parameter> parameters, bool is_variadic);
  TypeId pointer_to(TypeId target);  // the same id for the same target
  /// `type` as what lies in a process's address space; the same id for the same type. Userland is
  /// the outermost qualifier.
  TypeId userland(TypeId type);
  bool is_userland(TypeId id) const { return (*this)[id].kind == TypeKind::Userland; }
  /// `id` without that.
  TypeId without_userland(TypeId id) const { return is_userland(id) ? (*this)[id].target : id; }
  /// A pointer whose value is an address of a process.
  TypeId user_pointer_to(TypeId target) { return pointer_to(userland(target)); }
  TypeId array_of(TypeId element, std::uint32_t count);
  /// Completes a Forward or empty type in place (a program that defines what it declared). Not a
  /// base's.
  void replace(TypeId id, const Type& type);

  /// Makes `id` findable by its kind and name, and an enum's constants by theirs; the first one to
  /// claim a name keeps it, except that a definition takes it from a Forward.
  void index(TypeId id);
  /// Makes `id` findable under another plain name: BTF's "long unsigned int" for `unsigned long`.
  void index_as(TypeId id, std::string_view name);
  /// Integer, Float, Typedef or String by plain name ("unsigned long", "size_t", "string").
  std::optional<TypeId> find(std::string_view name) const;
  /// "struct name", "union name", "enum name".
  std::optional<TypeId> find(TypeKind kind, std::string_view name) const;
  /// The constant that an indexed enum defines: `TASK_RUNNING`.
  std::optional<std::pair<TypeId, std::int64_t>> find_enumerator(std::string_view name) const;

  /// Bulk filling, for a reader of many types (BTF). Names are not copied: they must be literals or
  /// lie in bytes that the graph adopt()ed. Members, enumerators and parameters are appended
  /// first; the Type then names them by `first` and `length`.
  void reserve(std::size_t types, std::size_t members, std::size_t enumerators,
               std::size_t parameters, std::size_t names);
  std::span<const std::byte> adopt(std::shared_ptr<const std::vector<std::byte>> bytes);
  TypeId append(const Type& type);
  std::uint32_t append_member(const Member& member);
  std::uint32_t append_enumerator(const Enumerator& enumerator);
  std::uint32_t append_parameter(const Parameter& parameter);
  std::uint32_t member_count() const { return static_cast<std::uint32_t>(members_.size()); }
  std::uint32_t enumerator_count() const { return static_cast<std::uint32_t>(enumerators_.size()); }
  std::uint32_t parameter_count() const { return static_cast<std::uint32_t>(parameters_.size()); }

  /// Strips typedefs and qualifiers; bounded, so a cycle in hostile BTF ends at void.
  TypeId resolve(TypeId id) const;
  /// Size in bytes of the type under typedefs and qualifiers; 0 when incomplete.
  std::uint64_t size_of(TypeId id) const;
  std::optional<FoundMember> find_member(TypeId id, std::string_view name) const;
  /// C spelling: "struct task_struct *", "unsigned int [4]", "int (*)(void *, ...)".
  std::string to_string(TypeId id) const;

  /// Copies `text` into storage that lives as long as the graph.
  std::string_view intern(std::string_view text);

 private:
  class Speller;

  /// An overlay's own types are numbered from here on, so that its base may grow.
  static constexpr std::uint32_t kFirstOfOverlay = 1U << 31;

  /// The graph that holds this type.
  const TypeGraph& owner(TypeId id) const { return id.value < first_ ? *base_ : *this; }
  void add_built_in_types();
  void claim(TypeKind kind, std::string_view name, TypeId id);
  bool find_member_in(TypeId id, std::string_view name, std::uint64_t bit_base, unsigned depth,
                      unsigned& budget, std::optional<FoundMember>& found) const;

  struct Key {
    TypeKind kind;
    std::string_view name;
    bool operator==(const Key&) const = default;
  };
  struct NameHash {
    std::size_t operator()(std::string_view name) const { return hash_name(name); }
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      return hash_name(key.name) * 31 + static_cast<std::size_t>(key.kind);
    }
  };

  const TypeGraph* base_ = nullptr;  // of an overlay
  std::uint32_t first_ = 0;          // number of types_[0]
  std::vector<Type> types_;
  std::vector<Member> members_;
  std::vector<Enumerator> enumerators_;
  std::vector<Parameter> parameters_;
  std::deque<std::string> names_;
  std::vector<std::shared_ptr<const std::vector<std::byte>>> adopted_;
  std::unordered_map<Key, TypeId, KeyHash> by_name_;
  std::unordered_map<std::string_view, std::pair<TypeId, std::int64_t>, NameHash> by_enumerator_;
  std::unordered_map<std::uint32_t, TypeId> pointers_, userland_;
};

/// The names under which a TypeGraph keeps the types of a kernel's variables, which BTF may have.
/// No C type can have such a name. Used to fill the graph and to look up in it.
inline std::string variable_key(std::string_view name) {
  return "variable " + std::string(name);
}
/// For a per-CPU variable: its symbol is an offset and not its address.
inline std::string percpu_variable_key(std::string_view name) {
  return "per-CPU variable " + std::string(name);
}

}  // namespace ringside
