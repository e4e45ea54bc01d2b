// User variables: global, self-> and this-> scalars, and associative arrays. Values are kept at
// their declared size; strings and structures by value. Built-in variables: builtin_variables.h.
// Fire context: yes, but for the constructors, unsettle() and share_globals().
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "dif/evaluate/dynamic_table.h"
#include "dif/evaluate/memory.h"
#include "dif/evaluate/shared_locks.h"
#include "dif/program/options.h"
#include "dif/program/program.h"
#include "vmm/base/result.h"

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

/// One scalar, or what the elements of an array are like.
struct VariableSlot {
  ValueType type;
  bool has_storage = false;  // by reference, in the arena of its scope
  /// A global integer that only BEGIN and END store: in between it may be read without a lock.
  bool settled = false;
  std::uint64_t value = 0;   // Integer; by reference: 0 while null
  std::uint64_t offset = 0;  // by reference: into its arena
};
using VariableSlots = std::vector<VariableSlot>;

/// The variables of a scope of every DIFO of one program, as it is bound to each machine, by id,
/// with their places in `storage`.
struct DeclaredVariables {
  VariableSlots slots;
  std::uint64_t storage = 0;  // bytes that by-reference scalars take
};
DeclaredVariables declare_variables(std::span<const Program* const> bound,
                                    const EngineOptions& options, VariableScope scope);

/// The variables that the vCPUs' firings share: global scalars, and the elements of arrays and
/// threads. Every access holds their lock (shared_locks.h).
class SharedVariables {
 public:
  SharedVariables(const Program& program, const EngineOptions& options, unsigned vcpus)
      : SharedVariables(std::array{&program}, options, vcpus) {}
  /// The variables of one program that is bound to several machines, for all their vCPUs. Each
  /// machine has dynvarsize.
  SharedVariables(std::span<const Program* const> bound, const EngineOptions& options,
                  unsigned vcpus);
  SharedVariables(const SharedVariables&) = delete;
  SharedVariables& operator=(const SharedVariables&) = delete;

  /// Some probe beside BEGIN and END stores this global. Before the first firing.
  void unsettle(std::uint16_t id);
  bool is_settled(std::uint16_t id) const { return globals_[id - kFirstUserVariable].settled; }
  /// Cleans what one vCPU erased, while none of its firings runs. Memory is free after two calls
  /// (dynamic_table.h).
  void clean(unsigned vcpu) { dynamic_.clean(vcpu); }
  /// Whether cleaning now rather than at cleanrate makes room that is soon needed.
  bool runs_short() { return dynamic_.runs_short(); }

 private:
  friend class Variables;
  friend class testing::StatePeer;

  VariableSlots globals_;
  std::uint64_t storage_used_ = 0;
  LazyMemory storage_;
  DynamicTable dynamic_;
};

/// The global variables, associative arrays and self-> variables of one program, and their locks.
/// The engines of several machines that run one program share one SharedGlobals, so that globals
/// belong to the program and not to a machine. Threads of different machines still have different
/// self-> variables, because the machine is part of a thread's identity.
struct SharedGlobals {
  SharedGlobals(const Program& program, const EngineOptions& options, unsigned vcpus)
      : locks(vcpus), variables(program, options, vcpus) {}
  SharedGlobals(std::span<const Program* const> bound, const EngineOptions& options, unsigned vcpus)
      : locks(vcpus), variables(bound, options, vcpus) {}

  SharedLocks locks;
  SharedVariables variables;
};

/// The share of one engine in them: from `first_vcpu` on, the vCPUs are its own.
struct GlobalsShare {
  std::shared_ptr<SharedGlobals> globals = nullptr;  // null: the engine makes its own
  unsigned first_vcpu = 0;
};

/// For several machines with `vcpus` in all. Unsupported where a global is of a kernel's type that
/// is not as large on all of them; the message names the variable.
Result<std::shared_ptr<SharedGlobals>> share_globals(std::span<const Program* const> bound,
                                                     const EngineOptions& options, unsigned vcpus);

/// The owner of elements of dynamic variables: a thread. The time of creation tells threads apart
/// that have the same id one after the other. All 0 for arrays of the program.
struct Owner {
  std::uint64_t thread = 0, born = 0;
};

/// One vCPU's view of them, and its this-> variables.
class Variables {
 public:
  /// All must outlive this.
  Variables(const Program& program, const EngineOptions& options, SharedVariables& shared,
            SharedAccess& access, Memory& memory, unsigned vcpu);

  /// Global and this-> scalars. By-reference ones are answered with a handle; 0 is null.
  std::uint64_t load(VariableScope scope, std::uint16_t id);
  Result<void, Fault> store(VariableScope scope, std::uint16_t id, std::uint64_t value);

  /// The slots of this-> variables, for compiled code.
  const VariableSlot* locals() const { return locals_.data(); }

  /// Dynamic ones: self-> scalars (empty tuple), and arrays. One that was never stored is 0.
  /// Storing 0 frees.
  Result<std::uint64_t, Fault> load_dynamic(VariableScope scope, std::uint16_t id, Owner owner,
                                            std::span<const TupleValue> tuple);
  Result<void, Fault> store_dynamic(VariableScope scope, std::uint16_t id, Owner owner,
                                    std::span<const TupleValue> tuple, std::uint64_t value);

  /// Stores that found no room since the last call: where nothing was to be cleaned, where there
  /// were dirty elements, and where there were only rinsing ones.
  struct DynamicDrops {
    std::uint64_t plain = 0, dirty = 0, rinsing = 0;
  };
  bool has_dropped() const {
    return (dynamic_drops_.plain | dynamic_drops_.dirty | dynamic_drops_.rinsing) != 0;
  }
  DynamicDrops take_dynamic_drops() { return std::exchange(dynamic_drops_, {}); }

 private:
  friend class testing::StatePeer;

  VariableSlot& slot_of(VariableScope scope, std::uint16_t id);
  const ValueType& type_of(VariableScope scope, std::uint16_t id) const;
  DynamicTable::Place take_place(VariableScope scope, Owner owner);
  Result<void, Fault> copy_value(const ValueType& type, std::uint64_t from,
                                 std::span<std::byte> to);
  void count_drop();
  Result<std::span<const std::byte>, Fault> make_key(VariableScope scope, std::uint16_t id,
                                                     Owner owner,
                                                     std::span<const TupleValue> tuple);

  SharedVariables& shared_;
  SharedAccess& access_;
  Memory& memory_;
  const unsigned vcpu_;
  const std::uint32_t string_size_;
  const VariableSlots threads_;  // types only
  VariableSlots locals_;
  LazyMemory storage_;  // of locals_
  LazyMemory key_;
  DynamicDrops dynamic_drops_;
};

}  // namespace ringside::dif
