// Follows code as a CPU may run it: along jumps, into calls, and past them when they can return.
// Finds the functions that can run between one place and the ends of a window
// (functions_without_idt.h). In doubt it finds too many: every branch is taken both ways, jump
// labels too. Hostile input: the text may be anything, so steps and depth are bounded. Code that
// cannot be followed is an error.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "disasm/decoder.h"
#include "vmm/base/guest_reader.h"
#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

class CodeWalk {
 public:
  /// A call or jump through a register or memory cannot be followed; this tells how a walk goes on.
  /// PassesOn: the path ends, but the code after the jump is walked too. Start-up code jumps in
  /// this way from its load address to its link address.
  enum class Indirect : std::uint8_t { Fails, EndsPath, PassesOn };
  /// Whether some path comes back by `ret` before the window ended.
  enum class Outcome : std::uint8_t { Ended, Returns };

  /// `text` is kernel text without breakpoints. Both must outlive it.
  CodeWalk(const GuestReader& text, const guest_linux::Kernel& kernel)
      : text_(text), kernel_(kernel) {}

  /// Walks from `start`, an instruction of vmlinux. Error (Unsupported): what cannot be followed.
  Result<Outcome> from(GuestVirt start, Indirect indirect);
  /// The starts of all functions of which a walk has met an instruction.
  const std::set<GuestVirt>& functions() const { return functions_; }

 private:
  /// An instruction to look at. `trusted`: its function was called by one that loads the table
  /// which serves from then on, so that a lidt ends the window.
  struct Step {
    GuestVirt at;
    bool trusted = false;
    Indirect indirect = Indirect::Fails;
    auto operator<=>(const Step&) const = default;
  };
  struct Path {
    std::set<Step> seen;
    std::vector<Step> open;
    Outcome outcome = Outcome::Ended;
  };

  Result<Outcome> walk(Step start);
  Result<void> step(Step step, Path& path);
  Result<void> follow_call(const disasm::Instruction& in, Step step, Path& path);
  Result<void> follow_jump(GuestVirt target, Step step, Path& path);
  Result<void> check_indirect(Step step) const;
  /// Where a jump label's other side leads, if one stands here.
  std::optional<GuestVirt> jump_label_target(GuestVirt at) const;
  const guest_linux::Symbol* function_at(GuestVirt at) const;
  bool has_name(GuestVirt at, bool (*matches)(std::string_view name)) const;

  const GuestReader& text_;
  const guest_linux::Kernel& kernel_;
  std::set<GuestVirt> functions_;
  std::map<Step, Outcome> known_;  // of functions, by where they start; Returns while under way
  unsigned steps_ = 0;
  unsigned depth_ = 0;
};

/// Functions that load the interrupt table which serves from then on: where they, or what they
/// call for it, execute lidt, a window ends.
bool loads_serving_table(std::string_view function);

}  // namespace ringside::providers
