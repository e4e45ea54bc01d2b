// Finds out which pieces of files' text the guest's processes are inside of: a thread whose next
// instruction lies there, or to which a signal handler will return there. Used before such code is
// taken away, while the guest stands still. The words on top of a thread's stack are all read: a
// signal frame is among them, and names the stack of the code that it has interrupted. A word may
// be left over from earlier, so more may be found than there is.
//
// A guest may have ten thousand threads, and each costs tens of reads. So look_ahead() looks at
// them while the guest runs. In the pause, a thread that has not run since is not looked at again:
// its count of switches (task_struct.nvcsw and nivcsw) is the same, and no CPU has it (on_cpu).
// Layouts come from the kernel's own types: as in processes.h and reverse_map.h, and struct
// pt_regs.
// Does not: know what the pieces are. Hostile input: all walks are bounded.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/processes/processes.h"
#include "vmm/linux/processes/reverse_map.h"
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
  static std::optional<UserStanding> prepare(vmm::GuestMemory& memory, const Kernel& kernel);

  /// A thread, as far as it tells whether it has run.
  struct Thread {
    GuestVirt mm, stack;  // struct mm_struct; its stack in the kernel
    std::uint64_t start_time = 0, switches = 0;
    bool may_run = true;
    bool operator==(const Thread&) const = default;
  };
  /// A mapping of a file that has ranges.
  struct Area {
    GuestVirt begin, end;
    GuestVirt inode;
    std::uint64_t offset = 0;
    bool has_copies = true;
    bool operator==(const Area&) const = default;
  };
  /// Threads that slept when they were looked at, and the ranges that they were inside of, as far
  /// as these were mapped then: the guest ran, so a mapping may have been missed.
  struct Sleepers {
    using Place = std::pair<GuestVirt, std::uint64_t>;  // where a range begins: inode, offset
    struct Sleeper {
      Thread was;
      std::vector<Area> areas;  // of its process
      std::vector<Place> inside;
    };
    std::set<Place> ranges;                          // that were looked for
    std::unordered_map<GuestVirt, Sleeper> threads;  // by task_struct
    /// By process (mm_struct): where a range should be mapped, since other bytes of the file are at
    /// the same distance, but the file is not there. The process may have moved its text to memory
    /// of its own, with the trap points in it.
    std::vector<std::pair<GuestVirt, Area>> moved;

    bool cover(std::span<const FileRange> asked) const;
  };
  /// While the guest runs, shortly before it is paused for find().
  Sleepers look_ahead(vmm::GuestMemory& memory, Kernel& kernel,
                      std::span<const FileRange> ranges) const;
  /// For each of the ranges, whether somebody is inside. An error: it cannot be told.
  Result<std::vector<bool>> find(vmm::PausedMachine& machine, Kernel& kernel,
                                 std::span<const FileRange> ranges, const Sleepers& sleepers) const;

  /// Where the first byte of a range is in the memory of a process that may have changed pages of
  /// the file, so may have its own copy. In a `moved` area, anything may be there.
  struct Copy {
    std::size_t range = 0;
    GuestPhys at;
    auto operator<=>(const Copy&) const = default;
  };
  struct Copies {
    std::vector<Copy> places;     // each once, in order
    std::size_t swapped_out = 0;  // pages that are not in memory, so may be anything
  };
  /// All of them. While the machine is paused.
  Copies copies(vmm::GuestMemory& memory, Kernel& kernel, std::span<const FileRange> ranges,
                const Sleepers& sleepers) const;

 private:
  template <class Visit>
  ListEnd walk(const GuestReader& reader, Visit visit) const;
  struct Space;
  struct Look;
  /// Byte offsets in struct task_struct.
  struct ThreadLayout {
    std::uint32_t mm = 0, stack = 0, start_time = 0, nvcsw = 0, nivcsw = 0;
    std::optional<std::uint32_t> on_cpu{};  // CONFIG_SMP

    static std::optional<ThreadLayout> from(const Kernel& kernel);
  };
  /// Empty: it has no memory, or cannot be read.
  std::optional<Thread> load_thread(const GuestReader& reader, GuestVirt task) const;

  TaskListLayout threads_;
  ProcessLayout processes_;
  ThreadLayout thread_;
  std::optional<ReverseMap> reverse_;
  std::optional<GuestVirt> linear_;  // where RAM is only copied
  std::uint32_t file_inode_ = 0;
  std::uint64_t stack_bytes_ = 0;      // of a task's stack in the kernel
  std::uint64_t saved_registers_ = 0;  // from its lowest address
  GuestVirt init_task_;
};

}  // namespace ringside::guest_linux
