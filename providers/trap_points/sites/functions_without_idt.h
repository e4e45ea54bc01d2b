// Finds functions that a CPU may run while it cannot take a breakpoint of ours: while it has no
// interrupt table, or not the kernel's, or while its GS does not point at its per-CPU data. An int3
// there is a triple fault. Such windows are open while a CPU comes up or wakes from sleep, and
// after the kernel gives up its table (kexec) or loads GS. The search begins at the start-up code,
// and at each instruction of the kernel that loads an interrupt table or GS. It finds everything
// that can run before the kernel's own table is loaded again. Used by TrapPointTable. Does not:
// look at entry code and .noinstr.text, which the kernel itself marks (Kernel::forbidden_text).
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

class FunctionsWithoutIdt {
 public:
  /// `text` is kernel text without breakpoints of ours. When it cannot be followed, all of the
  /// kernel's text is refused with the reason why.
  static FunctionsWithoutIdt find(const GuestReader& text, const guest_linux::Kernel& kernel);

  /// Why no int3 may stand in the function that starts at `function`; empty when it may.
  std::string_view reason(GuestVirt function) const;
  std::size_t size() const { return reasons_.size(); }

 private:
  std::map<GuestVirt, std::string_view> reasons_;  // by where the function starts
  std::string all_;                                // for everything, when the search failed
};

}  // namespace ringside::providers
