// Kernel stacks of a live guest's sleeping tasks: as we unwind them, and as /proc/PID/stack has
// them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "vmm/linux/kernel.h"
#include "vmm/linux/stacks/stack_tables.h"
#include "vmm/page_walk.h"

namespace ringside::live {

/// Frames from the innermost outward, "function+0x12".
struct Stacks {
  std::vector<std::string> ours, theirs;
};

/// Runs a shell command in the guest; returns what it prints.
using Ask = std::function<std::string(const std::string& command)>;

/// The stacks, by pid, of tasks that were where they are before and after we looked.
std::map<std::int32_t, Stacks> stacks_at_rest(const vmm::PageTableReader& reader,
                                              guest_linux::Kernel& kernel,
                                              const guest_linux::StackTables& tables,
                                              const Ask& ask);

}  // namespace ringside::live
