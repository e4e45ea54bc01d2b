// The files that a process has mapped, as we find them in the guest's memory and as the guest lists
// them in /proc/PID/maps: a line "begin-end offset name" each.
// Used by live_kernel_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vmm/linux/kernel.h"
#include "vmm/page_walk.h"

namespace ringside::live {

/// Empty when the process is not found.
std::vector<std::string> files_that_we_find(const vmm::PageTableReader& reader,
                                            guest_linux::Kernel& kernel, std::uint64_t pid);
/// Out of the text of /proc/PID/maps.
std::vector<std::string> files_that_the_guest_lists(const std::string& maps);

}  // namespace ringside::live
