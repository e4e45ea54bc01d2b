// Finds all places that jumps into a function may lead to: jumps of its text, of its .cold part,
// and of the code that handles its faults. Jump labels that are off (nops) count as jumps, and so
// do entries of the exception table. Used by JumpRunFinder. Hostile input: parts and bytes are
// capped; beyond the cap the targets are unknown.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "vmm/base/address.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

class JumpTargets {
 public:
  /// `text` is kernel text without breakpoints. Both must outlive it.
  JumpTargets(const GuestReader& text, const guest_linux::Kernel& kernel)
      : text_(text), kernel_(kernel) {}

  /// Sorted; those outside of the function, too. Empty: some lead where only registers or tables
  /// tell, or into code that cannot be looked at, or its own does not decode.
  std::optional<std::vector<GuestVirt>> of(const guest_linux::Symbol& function);
  /// The kernel's symbols may have changed since the last call.
  void forget() { cold_parts_.reset(); }

 private:
  struct ColdPart {
    std::string_view owner;
    const guest_linux::Symbol* symbol;
  };
  const std::vector<ColdPart>& cold_parts();

  const GuestReader& text_;
  const guest_linux::Kernel& kernel_;
  std::optional<std::vector<ColdPart>> cold_parts_;  // sorted by owner
};

}  // namespace ringside::providers
