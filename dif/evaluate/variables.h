// User variables: global, self-> and this-> scalars, and associative arrays. Values are kept at
// their declared size; strings and structures by value. Built-in variables: builtin_variables.h.
// Fire context: yes, but for the constructor.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dif/evaluate/dynamic_table.h"
#include "dif/evaluate/memory.h"
#include "dif/program/options.h"
#include "dif/program/program.h"

namespace ringside::dif {

namespace testing {
class StatePeer;
}

/// One key of an associative array or one argument of a call.
struct TupleValue {
  std::uint64_t value = 0;
  std::uint64_t size = 0;  // Bytes: how many
  ValueKind kind = ValueKind::Integer;
};

class Variables {
 public:
  /// Collects what every DIFO of a verified program declares. `memory` must outlive this.
  Variables(const Program& program, const EngineOptions& options, Memory& memory);

  /// Global and this-> scalars. By-reference ones are answered with a handle; 0 is null.
  std::uint64_t load(VariableScope scope, std::uint16_t id) const;
  Result<void, Fault> store(VariableScope scope, std::uint16_t id, std::uint64_t value);

  /// Dynamic ones: self-> scalars (empty tuple, owner is the thread), and arrays. Global arrays
  /// have owner 0. One that was never stored is 0. Storing 0 frees.
  Result<std::uint64_t, Fault> load_dynamic(VariableScope scope, std::uint16_t id,
                                            std::uint64_t owner, std::span<const TupleValue> tuple);
  Result<void, Fault> store_dynamic(VariableScope scope, std::uint16_t id, std::uint64_t owner,
                                    std::span<const TupleValue> tuple, std::uint64_t value);

  /// Erased elements' memory comes back after two of these (dynamic_table.h).
  void clean() { dynamic_.clean(); }
  /// Stores that found no room since the last call: where nothing was to be cleaned, where there
  /// were dirty elements, and where there were only rinsing ones.
  struct DynamicDrops {
    std::uint64_t plain = 0, dirty = 0, rinsing = 0;
  };
  DynamicDrops take_dynamic_drops() { return std::exchange(dynamic_drops_, {}); }

 private:
  friend class testing::StatePeer;
  struct Slot {
    ValueType type;
    bool has_storage = false;  // by reference, in the arena of its scope
    std::uint64_t value = 0;   // Integer; by reference: 0 while null
    std::uint64_t offset = 0;  // by reference: into its arena
  };
  using Slots = std::vector<Slot>;

  void declare(const Difo& difo);
  void place(Slots& slots, std::vector<std::byte>& storage, Arena arena);
  Slots& slots(VariableScope scope) { return slots_[static_cast<std::size_t>(scope)]; }
  const Slots& slots(VariableScope scope) const { return slots_[static_cast<std::size_t>(scope)]; }
  Result<void, Fault> copy_value(const ValueType& type, std::uint64_t from,
                                 std::span<std::byte> to);
  void count_drop();
  Result<std::span<const std::byte>, Fault> make_key(VariableScope scope, std::uint16_t id,
                                                     std::uint64_t owner,
                                                     std::span<const TupleValue> tuple);

  Memory& memory_;
  std::uint32_t string_size_;
  std::array<Slots, 3> slots_;
  std::vector<std::byte> globals_, locals_;
  DynamicTable dynamic_;
  std::vector<std::byte> key_;
  DynamicDrops dynamic_drops_;
};

/// Bytes that a value of this type occupies.
std::uint32_t stored_size(const ValueType& type, std::uint32_t string_size);
/// Global and this-> variables by reference have their place from the start. What they take in
/// total, with strings of `string_size` bytes, may not be more than kMostStorage: Limit.
inline constexpr std::uint64_t kMostStorage = 64 << 20;
Result<void> check_storage(const Program& program, std::uint32_t string_size);
/// `value` cut to the type's size and extended by its sign, as a register holds it.
std::uint64_t narrow(const ValueType& type, std::uint64_t value);

}  // namespace ringside::dif
