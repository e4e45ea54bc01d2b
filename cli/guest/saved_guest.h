// Opens a guest that was saved to a file: a machine that never runs, and the Linux kernel in it.
// Used for --core and by `why --core`. Does not: trace anything.
#pragma once

#include <memory>
#include <string>

#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"
#include "vmm/saved/saved_machine.h"

namespace ringside::cli {

struct SavedGuest {
  std::unique_ptr<vmm::SavedMachine> machine;
  Result<std::unique_ptr<guest_linux::Kernel>> kernel;  // at any stage of its boot
};

/// An error for a file that is no saved guest. For a raw file, the kernel's max_pfn (the end of
/// RAM) tells how the file is split at 4 GiB. `types_file`: --types; empty: the kernel's own types.
Result<SavedGuest> open_saved_guest(const std::string& path, const std::string& types_file);

}  // namespace ringside::cli
