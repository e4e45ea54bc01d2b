// Where the jumps of a function may lead to, once the kernel has switched what it can switch: those
// of its text, of its .cold part, of the code that runs after its faults. A way there may be a
// jump label that is off, which is a nop, or an entry of the exception table.
// Used by JumpRunFinder. Hostile input: parts and bytes are capped; what is beyond is not known.
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
