// The tasks of a live guest, and the kernel stacks of those that sleep: as we unwind them, and as
// /proc/PID/stack has them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
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

/// The task_struct of a process, by the list of all.
std::optional<GuestVirt> find_task(const vmm::PageTableReader& reader, guest_linux::Kernel& kernel,
                                   std::int32_t pid);

/// Runs a shell command in the guest; returns what it prints.
using Ask = std::function<std::string(const std::string& command)>;

/// The stacks, by pid, of tasks that were where they are before and after we looked.
std::map<std::int32_t, Stacks> stacks_at_rest(const vmm::PageTableReader& reader,
                                              guest_linux::Kernel& kernel,
                                              const guest_linux::StackTables& tables,
                                              const Ask& ask);

}  // namespace ringside::live
