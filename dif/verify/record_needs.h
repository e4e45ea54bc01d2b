// Decides which clauses can be evaluated later, from the record of a trap: the registers, the time,
// of the current task its address, name, ids and start time, and such words of the guest's memory
// as the record was told to copy. A clause that changes the guest, or looks at memory whose address
// a record cannot tell, has to be evaluated while the vCPU stands still.
//
// An object is judged by one walk over its instructions (forward_walk.h), which follows where each
// register's address comes from: an argument, the task, or the value of an earlier load, and a
// constant. Memory of D's own needs nothing: a string constant, a variable, or what a subroutine
// has made. Of a predicate each way is walked, too, for the guest to judge what it can
// (predicate_checks.h). Used by the tracer, which lets probes record or wait. Fire context: no.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dif/program/builtin.h"
#include "dif/program/program.h"
#include "dif/verify/predicate_checks.h"

namespace ringside::dif {

/// An address, as far as it is known before the probe fires: what it is counted from, and a
/// distance. A number that is known to be small may be added to it, as an index, or the length of a
/// string; or one of any size that another load tells.
struct RecordAddress {
  enum class Base : std::uint8_t {
    Constant,  // nothing: the offset is the address
    Argument,  // argument `number` of the probe
    Task,      // curthread
    Load,      // the 8 bytes of load `number`
    PerCpu,    // the CPU's own data; clauses have no such address, code of the guest's has
    Kept,      // argument `number` of the call that returns, as its entry had it
  };
  Base base = Base::Constant;
  std::uint16_t number = 0;
  std::int64_t offset = 0;  // bytes
  std::uint32_t room = 0;   // the address may be as many bytes further on
  /// It is further on by the lowest bytes of what a load copies, which are an unsigned number.
  struct Index {
    std::uint16_t load = 0;
    std::uint8_t bytes = 0;

    bool operator==(const Index&) const = default;
  };
  std::optional<Index> index = std::nullopt;

  static constexpr std::uint32_t kMostRoom = 4096;  // a record has no more

  bool operator==(const RecordAddress&) const = default;
};

/// Memory of the guest that a clause may look at, whichever way it takes. The address has no room:
/// `bytes` are all that may be looked at from there.
struct RecordLoad {
  RecordAddress at;
  std::uint32_t bytes = 0;
  bool is_users = false;  // an address of the process's, else the kernel's

  bool operator==(const RecordLoad&) const = default;
};

/// A path name that a clause makes: of a directory entry, and the mount that it lies in.
struct RecordPath {
  RecordAddress dentry, mount;

  bool operator==(const RecordPath&) const = default;
};

/// By variables of a thread (self->): each holds 0, or this argument of the call that returns.
using KeptArguments = std::map<std::uint16_t, std::uint16_t>;

/// Whether the arguments of a call's entry can still be found at its return.
enum class EntryArguments : std::uint8_t { Gone, Kept };

struct RecordNeeds {
  /// The arguments that the clause uses, by bit: the probe's place has to tell where they are.
  std::uint16_t arguments = 0;
  bool error_number = false;         // errno, likewise
  bool registers = false;            // regs[], or what a variable makes of them
  bool ids = false;                  // of the task: pid, tid, or what tells threads apart
  bool stack = false;                // the kernel's
  std::vector<Builtin> variables{};  // those of BuiltinSource::Words, each once
  std::vector<RecordLoad> loads{};   // each once; a load's base is an earlier one
  std::vector<RecordPath> paths{};   // each once; counted from `loads`, too
  /// Of numbers that loads read, and that say how much is looked at. Where one of these does not
  /// hold, it is more than `loads` have, and the trap has to wait.
  std::vector<RecordCheck> bounds{};
  /// Memory at a kept argument is looked at whether the call has succeeded or not.
  bool keeps_past_success = false;

  /// Unless all of these hold, the clause does nothing. They are of what each record has.
  std::vector<RecordCheck> checks{};
  /// The same, but only once all that the predicate looks at could be copied.
  std::vector<RecordCheck> later_checks{};
  /// The predicate looks at these arguments, and at so many of `loads`.
  std::uint16_t predicate_arguments = 0;
  std::size_t predicate_loads = 0;

  /// Why it cannot be evaluated later, worded to follow "waits: "; empty: it can.
  std::optional<std::string> obstacle = std::nullopt;

  bool operator==(const RecordNeeds&) const = default;
  /// Of both: a check remains if both have it.
  RecordNeeds& operator|=(const RecordNeeds& other);
  /// Adds what other clauses look at, which run only while these do, as those of ERROR. The checks
  /// stay as they are.
  void add_looks(const RecordNeeds& other);
  /// Whether it looks at memory that an argument points at.
  bool follows_arguments() const;
  /// Adds a load, unless it is there; returns its number.
  std::uint16_t add(const RecordLoad& load);
  void add(const RecordPath& path);
  void add_bound(const RecordCheck& bound);
};

/// A number that one object works out.
struct RecordedNumber {
  RecordNeeds needs;                     // of the object
  std::optional<RecordAddress> address;  // that it is, by the loads of `needs`; empty: not known
};

/// Of a verified object without strings.
RecordedNumber recorded_number(const Difo& difo);

/// Of a verified clause. `string_size`: the most bytes of a string (strsize). `kept`: if it is of a
/// call's return.
RecordNeeds record_needs(const Clause& clause, std::uint32_t string_size,
                         const KeptArguments& kept = {});

}  // namespace ringside::dif
