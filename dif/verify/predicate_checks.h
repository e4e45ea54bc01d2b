// Finds what a predicate needs to be true, as far as the record of a trap can tell: comparisons of
// a number in the record with a constant. Where one of them does not hold, the clause would do
// nothing, so the guest need not record the trap. Each way through the predicate has its own
// comparisons. Those that all ways to "true" share are what it needs.
//
// A way that may fault, or that changes something, counts as one to "true": a clause whose
// predicate faults fires dtrace:::ERROR. Of such a way only the comparisons before that moment
// count. Used by record_needs.h, which walks the ways. Pure. Fire context: no.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "dif/program/insn.h"

namespace ringside::dif {

/// Bytes of a task's name with its NUL (TASK_COMM_LEN of Linux, 2.6 to 6.12).
inline constexpr std::size_t kTaskNameBytes = 16;

/// A number that a record tells.
struct RecordValue {
  enum class Source : std::uint8_t {
    Task,      // curthread
    Pid,       // as D has it: the process's
    Tid,       // the thread's
    Name,      // the 8 bytes of execname from 8 * `number` on
    Argument,  // argument `number` of the probe
    Load,      // what load `number` reads
  };
  Source source = Source::Task;
  std::uint16_t number = 0;
  std::uint8_t bytes = sizeof(std::uint64_t);  // the low ones count
  bool is_signed = false;                      // of fewer than 8
  std::uint64_t mask = UINT64_MAX;             // of the extended value

  bool operator==(const RecordValue&) const = default;
};

/// A comparison: holds if "value relation with" is true, or if it is negated and that is false.
struct RecordCheck {
  enum class Relation : std::uint8_t { Equal, Less, LessUnsigned };
  RecordValue value;
  Relation relation = Relation::Equal;
  bool is_negated = false;
  std::uint64_t with = 0;

  bool operator==(const RecordCheck&) const = default;
};

/// A side of a comparison, as far as it is known: a constant, a number of the record, the text of a
/// string constant.
using Compared = std::variant<std::monostate, std::uint64_t, RecordValue, std::string_view>;

/// The checks that hold if the branch is taken after a comparison of both sides, or if it is not.
/// Empty where no check can tell. Strings: a constant of at most 15 bytes, and execname, which is
/// RecordValue::Source::Name.
std::vector<RecordCheck> checks_after(Opcode branch, bool taken, const Compared& left,
                                      const Compared& right);

/// One way through a predicate.
struct PredicateWay {
  enum class Mark : std::uint8_t {
    Look,   // it looks at memory that the record copies, which may fail
    Other,  // it may fail, or changes something
  };
  std::vector<std::variant<RecordCheck, Mark>> steps;
  bool is_true = false;  // or may be
};

/// Leaves those of `checks` that are among `others`, too.
void keep_common(std::vector<RecordCheck>& checks, std::span<const RecordCheck> others);
/// The checks of all ways to "true". `looks_fail`: only those that come before any look.
std::vector<RecordCheck> common_checks(std::span<const PredicateWay> ways, bool looks_fail);

}  // namespace ringside::dif
