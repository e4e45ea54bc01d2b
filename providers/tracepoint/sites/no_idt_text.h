// Functions that a CPU may run while it cannot take a breakpoint of ours: it has no interrupt table
// or another one than the kernel's, or its GS does not lead to its per-CPU data. An int3 there is a
// triple fault. Such windows are open while a CPU comes up or wakes from sleep, and from where the
// kernel gives up its table (kexec) or loads GS.
// By rule: from the start-up code on, and from each instruction of the kernel that loads an
// interrupt table or GS, everything is found that can run before the table is there that serves.
// Used by TracepointTable. Does not: look at entry code and .noinstr.text, which the kernel itself
// marks (Kernel::forbidden_text).
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

class NoIdtText {
 public:
  /// `text` is kernel text without breakpoints of ours. When it cannot be followed, all of the
  /// kernel's text is refused with the reason why.
  static NoIdtText find(const GuestReader& text, const guest_linux::Kernel& kernel);

  /// Why no int3 may stand in the function that starts at `function`; empty when it may.
  std::string_view reason(GuestVirt function) const;
  std::size_t size() const { return reasons_.size(); }

 private:
  std::map<GuestVirt, std::string_view> reasons_;  // by where the function starts
  std::string all_;                                // for everything, when the search failed
};

}  // namespace ringside::providers
