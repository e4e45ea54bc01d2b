// The verifier: the only way to a VerifiedProgram, whatever the source of the DIF.
// Its rules stand at the heads of verify.cc (objects) and verify_program.cc. They cover an action's
// arguments, formats, keys, shapes, speculations and loops, so the engine and the consumer use
// these as indices without a check of their own.
#pragma once

#include <optional>
#include <string_view>

#include "dif/program/program.h"
#include "vmm/base/result.h"

namespace ringside::dif {

/// Holding one is the proof that every DIFO in it passed the rules; the engine takes nothing else.
class VerifiedProgram {
 public:
  const Program& program() const { return program_; }

 private:
  friend Result<VerifiedProgram> verify_program(Program program);
  explicit VerifiedProgram(Program program) : program_(std::move(program)) {}
  Program program_;
};

/// Checks every DIFO; sets its `destructive` bit. The error names clause, action and instruction.
Result<VerifiedProgram> verify_program(Program program);
/// The rules for one object.
Result<void> verify_difo(const Difo& difo);
/// A value of the type can be kept or recorded: its size is one that its kind has, `most` bytes at
/// the most. `what` is what the error calls it.
Result<void> check_value_type(const ValueType& type, std::uint32_t most, std::string_view what);
/// The call in the object that can change the guest when it runs: "copyout", "copyoutstr"; empty:
/// nothing.
std::string_view guest_changing_call(const Difo& difo);
inline bool changes_the_guest(const Difo& difo) {
  return !guest_changing_call(difo).empty();
}
/// True if an action needs -w, for the action itself or for an object of its arguments.
bool is_destructive(const Action& action);
/// The first thing in a program that needs -w: an action, or a subroutine that an object calls.
struct Destructive {
  std::string_view name;
  std::int32_t line = 0;  // of the source: its own, or its clause's
};
std::optional<Destructive> first_destructive(const Program& program);

inline constexpr std::size_t kMostClauses = 16 << 10;
inline constexpr std::size_t kMostActions = 16 << 10;       // of one clause
inline constexpr std::uint32_t kMostRecordBytes = 1 << 20;  // of one recorded value

/// Global and this-> variables by reference have their place from the start. Together, with strings
/// of `string_size` bytes, they may not take more than kMostStorage: Limit.
inline constexpr std::uint64_t kMostStorage = 64 << 20;
Result<void> check_storage(const Program& program, std::uint32_t string_size);

}  // namespace ringside::dif
