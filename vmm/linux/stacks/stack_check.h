// Finds out whether anything in a paused guest is in the middle of a piece of code: a vCPU, or a
// task that sleeps or was preempted there and will go on. Used before such code is taken away. All
// words of each stack are read: if none points into the code, nothing can return there. A word that
// points into it may be left over from an earlier call: the unwinder decides, and in doubt the task
// counts as inside. The run queues prove that all tasks are known: they have no more runnable tasks
// than the lists that were followed.
// Layouts come from the kernel's own types: task_struct, signal_struct, rq, inactive_task_frame.
// Used to take the shim out of a guest, and to prove that nobody stands in the middle of
// instructions that one jump is to replace. Hostile input: lists are bounded and may not close.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/layout.h"
#include "vmm/linux/online_cpus.h"
#include "vmm/linux/processes/processes.h"
#include "vmm/linux/stacks/stack_tables.h"
#include "vmm/machine.h"

namespace ringside::guest_linux {

/// Byte offsets in the kernel's structures.
struct StackCheckLayout {
  TaskListLayout list;
  std::uint32_t task_stack, task_sp, task_pid, task_comm;
  NumberMember task_on_cpu, task_on_rq;  // int; of 7.2 a byte
  std::uint32_t rq_running, rq_current, rq_idle;
  std::uint32_t frame_bp, frame_return;  // of what a task that does not run has left on its stack

  /// Unsupported, naming the structure or member that the kernel's types lack.
  static Result<StackCheckLayout> from(const TypeGraph& types);
};

/// A vCPU or task that may be inside, and the addresses in the code at which it stands or to which
/// it returns. There may be too many addresses: words that earlier calls have left count as well.
struct CodeUser {
  std::string name;  // "task 12 (dd)", "vCPU 0"
  std::vector<GuestVirt> places;
};

class StackCheck {
 public:
  /// Only before Kernel::end_set_up(). Unsupported when the kernel lacks types or symbols for it.
  static Result<StackCheck> prepare(const Kernel& kernel);

  /// All that may be inside `code`. An error means that it cannot be told now; a moment later it
  /// may be.
  Result<std::vector<CodeUser>> find(vmm::PausedMachine& machine, const GuestReader& reader,
                                     Kernel& kernel, Kernel::AddressRange code);

  /// All words that lead into one of `ranges`, of all stacks and of where vCPUs stand; more than
  /// those that somebody will go on at. `ranges` are in order and apart. An error as above: also
  /// while a vCPU is on a stack that is no task's.
  Result<std::vector<GuestVirt>> words_in(vmm::PausedMachine& machine, const GuestReader& reader,
                                          Kernel& kernel,
                                          std::span<const Kernel::AddressRange> ranges);

 private:
  struct Task {
    GuestVirt address;
    std::uint64_t stack = 0, sp = 0;
    bool on_cpu = false, queued = false, current = false, idle = false;
  };
  class Look;

  StackCheckLayout layout_;
  OrcLayout orc_;
  std::optional<OnlineCpus> online_;
  GuestVirt init_task_{0};
  std::uint64_t stack_bytes_ = 0;      // of a task's stack
  std::uint64_t run_queues_ = 0;       // offset in a CPU's own data
  std::optional<StackTables> tables_;  // read when first needed: they are large
};

}  // namespace ringside::guest_linux
