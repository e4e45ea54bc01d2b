// Unwind tables of user programs: .eh_frame, and the index over it, .eh_frame_hdr (LSB 5.0 Core,
// 10.6; the rules are DWARF 5's, section 6.4). For each piece of code they say where its frame
// begins (the CFA: rsp before the call), and where the registers of its caller are. Compilers write
// them for all C, C++ and Rust code on x86-64, with or without frame pointers.
//   .eh_frame_hdr  version 1, encodings, the address of .eh_frame, the number of entries, then
//                  entries of two s32: code and FDE, each a distance from the header, sorted by
//                  code
//   .eh_frame      CIEs (what FDEs share) and FDEs (a range of code, and a program of rules for it)
// Used by user_unwind.h and file_pieces.h. Does not: know processes, or cache.
// Hostile input: whatever is read was copied; steps are bounded by a StepBudget. Fire context: yes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "vmm/base/guest_reader.h"
#include "vmm/base/result.h"
#include "vmm/linux/processes/dwarf_expression.h"

namespace ringside::guest_linux {

/// The index of one image, by addresses as `image` reads them.
struct EhFrameIndex {
  GuestVirt header;         // .eh_frame_hdr; entries count from it
  std::uint64_t first = 0;  // from the header to the first entry
  std::uint32_t count = 0;

  /// Reads the header at `header`. BadAddress when it cannot be read; IllegalOperation when it is
  /// of a form that linkers do not write, or has no sorted entries.
  static Result<EhFrameIndex, Fault> read(const GuestReader& image, GuestVirt header);
};

/// Where a register of the caller is.
struct RegisterRule {
  enum class Kind : std::uint8_t {
    Unchanged,     // it has this frame's value
    Undefined,     // lost; for the return address: there is no caller
    AtOffset,      // in memory, at the CFA plus `value`
    IsOffset,      // the CFA plus `value`
    IsRegister,    // in this frame's register number `value`
    AtExpression,  // in memory, at the value of the expression at address `value`
    IsExpression,  // the value of that expression
  };
  Kind kind = Kind::Unchanged;
  std::uint16_t length = 0;  // of the expression
  std::int64_t value = 0;
};

/// The frame at one piece of code.
struct FrameRules {
  /// The CFA: register number `cfa_register` plus `cfa.value`, or the value of the expression at
  /// address `cfa.value` if its kind is IsExpression.
  RegisterRule cfa;
  std::uint8_t cfa_register = 0;
  bool is_signal = false;  // the caller was interrupted; it called nothing
  std::array<RegisterRule, std::tuple_size_v<FrameRegisters>> registers;
};

/// Why there are no rules for a piece of code.
enum class NoRules : std::uint8_t {
  NotCovered,  // no table describes it
  Unreadable,  // a part of the table is not in memory, is malformed, or took too many steps
};

/// The rules at `pc`.
Result<FrameRules, NoRules> find_frame_rules(const GuestReader& image, const EhFrameIndex& index,
                                             GuestVirt pc, StepBudget& budget);

/// A piece of code that the tables describe: a function, or a part of one that the compiler has put
/// somewhere else.
struct CodePiece {
  GuestVirt begin;
  std::uint64_t size = 0;  // bytes
  FrameRules rules;        // at its beginning
};

/// The piece that has `pc`.
Result<CodePiece, NoRules> find_code_piece(const GuestReader& image, const EhFrameIndex& index,
                                           GuestVirt pc, StepBudget& budget);

/// Where a step from a frame to its caller ended.
enum class FrameStep : std::uint8_t { Up, Outermost, Failed };

/// Changes `registers` to the caller's. On anything but Up they are unspecified. `image`: for
/// expressions. `process`: the stack.
FrameStep step_up(const FrameRules& rules, const GuestReader& image, const GuestReader& process,
                  FrameRegisters& registers, StepBudget& budget);

}  // namespace ringside::guest_linux
