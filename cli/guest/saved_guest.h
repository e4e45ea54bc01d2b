// A guest that was saved to a file, as a machine that stands still for ever, and the Linux in it.
// Used by the commands that look at one. Does not: trace anything.
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

/// An error for a file that is no saved guest. Of a raw file the kernel says where it is split at
/// 4 GiB: by max_pfn, the end of its RAM.
Result<SavedGuest> open_saved_guest(const std::string& path);

}  // namespace ringside::cli
