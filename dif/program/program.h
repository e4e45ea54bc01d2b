// Programs, as the D compiler makes them and the engine runs them: clauses with their DIF objects,
// and the tables that they refer to. Plain data: no guest, no files, no D syntax.
// Sources: the published DIF instruction set and DIFO parts (see dif/program/opcodes.def).
// Fire context: read only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dif/program/action_kind.h"
#include "dif/program/probe_description.h"
#include "dif/program/stability.h"
#include "vmm/base/result.h"

namespace ringside::dif {

/// How a value that DIF returns, or that a variable holds, is stored and printed.
enum class ValueKind : std::uint8_t {
  Integer,  // 1, 2, 4 or 8 bytes by value
  String,   // by reference, at most strsize bytes; NUL-terminated where it is shorter
  Bytes,    // `size` bytes by reference (a struct, an array, copyin's result)
  Void,
  // Addresses of the guest's code. The object's value is the address where it has one
  // (sym, mod, usym, umod, uaddr); stacks have no code: the engine asks the firing's context.
  KernelStack,   // size / 8 frames, innermost first, each 8 bytes; unused ones are 0
  UserStack,     // the process id, then size / 8 - 1 frames, likewise
  KernelSymbol,  // 8 bytes, an address: sym(), func()
  KernelModule,  // 8 bytes, an address: mod()
  UserSymbol,    // 16 bytes: process id, address: usym(), ufunc()
  UserModule,    // 16 bytes: umod()
  UserAddress,   // 16 bytes: uaddr()
};

/// The id of a process, then addresses of its code.
constexpr bool is_user_code(ValueKind kind) {
  return kind == ValueKind::UserStack || kind == ValueKind::UserSymbol ||
         kind == ValueKind::UserModule || kind == ValueKind::UserAddress;
}

struct ValueType {
  ValueKind kind = ValueKind::Integer;
  bool is_signed = true;   // Integer
  std::uint32_t size = 8;  // bytes; for String 0, meaning strsize
  bool operator==(const ValueType&) const = default;
};

constexpr bool is_by_reference(const ValueType& type) {
  return type.kind == ValueKind::String || type.kind == ValueKind::Bytes;
}

/// Bytes that a value of this type occupies.
constexpr std::uint32_t stored_size(const ValueType& type, std::uint32_t string_size) {
  switch (type.kind) {
    case ValueKind::Void: return 0;
    case ValueKind::String: return type.size == 0 ? string_size : std::min(type.size, string_size);
    case ValueKind::Integer:
    case ValueKind::Bytes:
    case ValueKind::KernelStack:
    case ValueKind::UserStack:
    case ValueKind::KernelSymbol:
    case ValueKind::KernelModule:
    case ValueKind::UserSymbol:
    case ValueKind::UserModule:
    case ValueKind::UserAddress: return type.size;
  }
  return 0;
}

enum class VariableScope : std::uint8_t { Global, Thread, Clause };
enum class VariableKind : std::uint8_t { Scalar, Associative };

/// One D variable, as the vartab of every DIFO that uses it lists it. Scopes have separate ids.
struct Variable {
  std::uint16_t id = 0;  // user variables start at kFirstUserVariable
  VariableScope scope = VariableScope::Global;
  VariableKind kind = VariableKind::Scalar;
  ValueType type;
  std::string name;  // for listings and messages
  bool operator==(const Variable&) const = default;
};

/// Whether its value lies in the memory of its scope. The others live in the table of dynamic
/// variables, or in a slot's own word.
inline bool has_storage(const Variable& variable) {
  return variable.scope != VariableScope::Thread && variable.kind == VariableKind::Scalar &&
         is_by_reference(variable.type);
}

inline constexpr std::uint16_t kFirstUserVariable = 0x500;
inline constexpr unsigned kRegisters = 8;   // r0 always reads 0
inline constexpr unsigned kTupleSlots = 8;  // keys of one associative array or arguments of a call
/// A key of bytes that is longer is not worth hashing; storing one is out of scratch space.
inline constexpr std::uint32_t kLongestBytesKey = 4096;

/// A part of a kernel to which a program refers by name, because each kernel has its own value for
/// it, and each boot its own addresses. bind() (dif/bind/bind.h) finds the values.
struct KernelName {
  enum class Kind : std::uint8_t {
    Symbol,      // the address of a variable or function
    Size,        // bytes of a type
    Member,      // a member's offset in bytes
    BitOffset,   // a bit-field's offset in bits
    BitUnit,     // the offset in bytes of the aligned `unit` bytes that hold a bit-field
    BitsAbove,   // 64 less the field's bits and those below it in its unit
    BitsUnused,  // 64 less the field's bits
    Enumerator,
    Elements,  // those of an array; only checked: there are at least `value`
    Process,   // $target: each machine's own, so no kernel's; never in a saved program
  };
  Kind kind = Kind::Symbol;
  std::string module = {};  // whose it is: "vmlinux"
  /// A symbol, an enumerator, or a type: "struct task_struct", "union x", "enum x", a typedef's
  /// name, and "vmlinux`init_task" for the type of that variable.
  std::string name = {};
  /// The way from that type on: members, and '*' for what a pointer points at and for an array's
  /// elements, with dots between: "pids.*.first". Offsets count from the last '*', or from a '&',
  /// which stands where the code has the address of what lies before it.
  std::string path = {};
  /// The type that the code takes a symbol or member for, as type_text() spells it
  /// (dif/bind/c_types.h); empty: it does not matter.
  std::string type = {};
  std::uint64_t value = 0;  // where it was compiled; of a symbol 0; of Elements what is needed
  bool fixed = false;       // the code is right for that value only
  std::uint8_t unit = 0;    // 1, 2, 4, 8
  std::int32_t line = 0;    // of the source that names it first; 0: unknown
  bool operator==(const KernelName&) const = default;
};

/// A place of an object that is filled in when the program is bound.
struct Relocation {
  enum class Place : std::uint8_t {
    Integer,   // an entry of the integer table
    Result,    // the size of the result, which is Bytes
    Variable,  // the size of a variable, which is Bytes
  };
  Place place = Place::Integer;
  std::uint32_t index = 0;  // of the integer or variable
  std::uint32_t name = 0;   // index into Program::kernel_names
  bool operator==(const Relocation&) const = default;
};

/// Where instructions come from, for messages about faults. Not part of a program's meaning: a
/// saved program has none, and is equal to the one that was saved.
struct SourceMap {
  struct Part {
    std::uint32_t first = 0;  // instruction; the part ends where the next one begins
    std::int32_t line = 0;    // of the source; 0: unknown
    std::string text = {};    // the expression, in D; empty where it would be long
    std::string absent = {};  // why an address of it may be 0: "json() found no \"a.b\""
    std::int32_t column = 0;  // of that line; 0: unknown
  };
  std::vector<Part> parts;
  bool operator==(const SourceMap&) const { return true; }
  /// The part that this instruction belongs to; null where nothing is known.
  const Part* at(std::uint32_t instruction) const {
    const Part* found = nullptr;
    for (const Part& part : parts) {
      if (part.first <= instruction) found = &part;
    }
    return found;
  }
};

/// A DIF object: one expression's code with its constant tables.
struct Difo {
  std::vector<std::uint32_t> text;      // instruction words; the last is ret
  std::vector<std::uint64_t> integers;  // setx
  std::string strings;                  // sets: NUL-terminated strings by offset; [0] is NUL
  std::vector<Variable> variables;      // every user variable that the text names
  std::vector<Relocation> relocations;  // none once bound
  ValueType result;
  bool destructive = false;  // set by the verifier's rules: copyout, stga...
  SourceMap source;
  bool operator==(const Difo&) const = default;
};

/// One aggregation variable: @name[keys] = function(...). Its keys' types are part of its identity.
struct Aggregation {
  std::string name;  // without '@'; empty for the anonymous aggregation
  AggregateFunction function = AggregateFunction::Count;
  std::vector<ValueType> keys;
  std::uint64_t parameters = 0;  // lquantize, llquantize: packed (aggregate_function.h)
  bool operator==(const Aggregation&) const = default;
};

/// One type as the consumer needs it to print values that outlive the compiler: print(), typed
/// structured output. A flat graph: `element` and Member::shape are indices into Program::shapes.
struct TypeShape {
  enum class Kind : std::uint8_t {
    Void,
    Integer,
    Float,
    Pointer,  // element: the type that it points at
    Array,    // element, count
    Struct,   // members
    Union,    // members
    Enum,     // enumerators
    String,
    Function,
  };
  struct Member {
    std::string name;  // empty: an anonymous struct or union
    std::uint32_t shape = 0;
    std::uint32_t bit_offset = 0;
    std::uint32_t bit_width = 0;  // 0: not a bit-field
    bool operator==(const Member&) const = default;
  };
  Kind kind = Kind::Void;
  std::string name;  // as C spells it: "struct task_struct *", "unsigned int [4]"
  std::uint64_t size = 0;
  bool is_signed = false, is_char = false;
  std::uint32_t element = 0, count = 0;
  std::vector<Member> members;
  std::vector<std::pair<std::string, std::int64_t>> enumerators;
  /// The name (KernelName::Kind::Size) of the kernel's type that this is; bind() makes it anew.
  std::optional<std::uint32_t> kernel_name;
  bool operator==(const TypeShape&) const = default;
};

struct Action {
  ActionKind kind = ActionKind::Trace;
  std::vector<Difo> arguments;  // evaluated left to right; which there are: ActionKind
  std::string format;           // Printf, Printa: checked against the arguments; Setopt's name
  std::string text;             // Setopt's value; empty: the value may be an argument. Percentile
  std::vector<std::uint32_t> aggregations;  // indices into Program::aggregations
  std::uint64_t argument = 0;
  bool has_argument = false;
  bool quantize_increment = false;  // Aggregate: the last argument is the increment
  /// Types of the arguments for the consumer, indices into Program::shapes; empty where none are
  /// known. Print has one.
  std::vector<std::uint32_t> shapes;
  SourceMap source;  // one part: the statement
  bool operator==(const Action&) const = default;
};

/// The bounded loop. When a clause with `repeat` has run and its predicate held, the firing goes on
/// at the clause `first` (its own index or a lower one, of the same probes), at most `limit` times
/// since the firing came to the loop. DIF itself stays free of backward branches; the verifier
/// checks that loops nest properly and that the product of nested limits is at most kMostTrips.
struct Repeat {
  std::uint32_t first = 0;
  std::uint32_t limit = 0;
  bool operator==(const Repeat&) const = default;
};
inline constexpr std::uint64_t kMostTrips = 1 << 20;

/// The type that a clause takes args[index] for, as type_text() spells it.
struct ArgumentType {
  std::uint32_t index = 0;
  std::string type;
  bool operator==(const ArgumentType&) const = default;
};

/// One clause: probe descriptions, predicate, actions. No actions: dtrace's default action.
struct Clause {
  std::vector<ProbeDescription> probes;
  std::optional<Difo> predicate;
  std::vector<Action> actions;
  std::optional<Repeat> repeat;
  /// A further part of the source clause that the clause before is of (if, loops): the scratch
  /// memory of that one stays.
  bool continues = false;
  std::string source_name;  // for messages
  int line = 0;
  Attributes description_attributes, statement_attributes;
  std::vector<ArgumentType> argument_types;  // of args[] that it uses; none once bound
  /// Which of Program::kernel_names its code needs; none once bound. All clauses need a name that
  /// no clause lists.
  std::vector<std::uint32_t> names;
  bool operator==(const Clause&) const = default;
};

/// Whether its firings have records. dtrace's default action is a record without data.
inline bool makes_records(const Clause& clause) {
  return clause.actions.empty() || std::ranges::any_of(clause.actions, [](const Action& action) {
           return records_data(action.kind);
         });
}

/// A part of the guest's kernel ("vmlinux" or a module) of which a program contains types without a
/// name. Such types cannot be found in another kernel, so the program runs only where that part has
/// the same types. The code that saves the program adds what identifies them
/// (vmm/linux/types/kernel_identity.h).
struct KernelNeed {
  std::string module = {};
  std::string type = {};     // one that has no name, as C spells it
  std::string release = {};  // of the kernel: "6.1.0-56-cloud-amd64"
  std::string build = {};
  std::uint64_t types_hash = 0;
  bool operator==(const KernelNeed&) const = default;
};

struct Program {
  std::vector<Clause> clauses;
  std::vector<Aggregation> aggregations;
  std::vector<TypeShape> shapes;
  std::map<std::string, std::string> options;  // from #pragma D option; the value may be empty
  /// The names that bind() finds; empty once bound, and of a program that contains nothing of a
  /// kernel.
  std::vector<KernelName> kernel_names;
  std::vector<KernelNeed> needs;
  bool operator==(const Program&) const = default;
};

template <class Visit>
void for_each_difo(const Program& program, Visit visit) {
  for (const Clause& clause : program.clauses) {
    if (clause.predicate) visit(*clause.predicate);
    for (const Action& action : clause.actions) {
      for (const Difo& difo : action.arguments) visit(difo);
    }
  }
}

}  // namespace ringside::dif
