// Finds out which pieces of files' text the guest's processes are inside of: a thread whose next
// instruction lies there, or to which a signal handler will return there. Used before such code is
// taken away, while the guest stands still. The words on top of a thread's stack are all read: a
// signal frame is among them, also on a stack of its own. A word may be left over from earlier, so
// more may be found than there is.
// Layouts come from the kernel's own types: as in processes.h, and struct pt_regs.
// Does not: know what the pieces are. Hostile input: all walks are bounded.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/processes/processes.h"
#include "vmm/machine.h"

namespace ringside::guest_linux {

/// Bytes of a file: [begin, end).
struct FileRange {
  GuestVirt inode;
  std::uint64_t begin = 0, end = 0;
};

class UserStanding {
 public:
  /// Only before Kernel::end_set_up(). Empty when the kernel's types do not describe all of it.
  static std::optional<UserStanding> prepare(const Kernel& kernel);

  /// For each of the ranges, whether somebody is inside. An error: it cannot be told.
  Result<std::vector<bool>> find(vmm::PausedMachine& machine, Kernel& kernel,
                                 std::span<const FileRange> ranges) const;

  /// Where the first byte of a range is in some process's memory, which may have a copy of its own.
  struct Copy {
    std::size_t range = 0;
    GuestPhys at;
    auto operator<=>(const Copy&) const = default;
  };
  /// All of them, each once, in order. While the machine is paused.
  std::vector<Copy> copies(vmm::GuestMemory& memory, Kernel& kernel,
                           std::span<const FileRange> ranges) const;

 private:
  template <class Visit>
  ListEnd walk(const GuestReader& reader, Visit visit) const;
  struct Look;

  Look begin(vmm::GuestMemory& memory, Kernel& kernel, std::span<const FileRange> ranges) const;

  TaskListLayout threads_;
  ProcessLayout processes_;
  std::uint32_t file_inode_ = 0, task_stack_ = 0, task_mm_ = 0;
  std::uint64_t stack_bytes_ = 0;      // of a task's stack in the kernel
  std::uint64_t saved_registers_ = 0;  // from its lowest address
  GuestVirt init_task_;
};

}  // namespace ringside::guest_linux
