// All tasks of a guest, processes and threads, as its kernel lists them, and their kernel stacks.
// Source: struct task_struct (include/linux/sched.h), whose state is `__state` since 5.14; the
// lists init_task.tasks and signal->thread_head; struct inactive_task_frame
// (arch/x86/include/asm/switch_to.h), which a task that does not run has at the top of its stack.
// Used by examine(). Hostile input: lists are bounded and may end early; each task counts once.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "vmm/arch/arch.h"
#include "vmm/linux/health/clocks.h"
#include "vmm/linux/health/kernel_view.h"
#include "vmm/linux/health/report.h"
#include "vmm/linux/processes/processes.h"
#include "vmm/linux/stacks/stack_walk.h"

namespace ringside::guest_linux {

class Tasks {
 public:
  /// More than these are not looked at.
  static constexpr std::size_t kMost = 65536;
  static constexpr std::size_t kMostFrames = 64;

  /// All must outlive this.
  Tasks(const KernelView& view, const Clocks& clocks, const StackTables& stacks);

  /// Looks at all of them; before all() and find().
  void list();
  const std::vector<Task>& all() const { return tasks_; }
  /// Whether the kernel's lists were followed to their ends.
  bool are_complete() const { return complete_; }
  /// Null when no task of the list is there.
  const Task* find(GuestVirt address) const;
  /// A task by its address alone: the idle tasks are in no list.
  std::optional<Task> read(GuestVirt address) const;

  /// The kernel stack of a task that does not run.
  std::vector<Frame> sleeping_stack(const Task& task) const;
  std::vector<Frame> running_stack(const Registers& registers) const;
  /// Where the task's saved registers begin; empty if that cannot be read, or lies outside of its
  /// stack.
  std::optional<GuestVirt> saved_stack_pointer(const Task& task) const;
  /// Bytes of a task's kernel stack.
  std::uint64_t stack_bytes() const { return stack_bytes_; }

 private:
  void add_threads(GuestVirt leader);
  void add(GuestVirt address);
  TaskState state_of(GuestVirt task) const;
  std::optional<std::uint64_t> since(GuestVirt address, const Task& task) const;
  std::vector<Frame> frames(const Registers& from, WalkStart start) const;

  const KernelView& view_;
  const Clocks& clocks_;
  const StackTables& stacks_;
  std::optional<Field> pid_, tgid_, comm_, state_, exit_state_, flags_, on_cpu_, stack_, saved_sp_,
      io_wait_, policy_, priority_, cpu_, last_arrival_, last_queued_, exec_start_, signal_, next_,
      oom_mm_;
  std::optional<TaskListLayout> list_;
  std::uint64_t stack_bytes_;
  std::vector<Task> tasks_;
  std::unordered_map<std::uint64_t, std::size_t> by_address_;
  bool complete_ = true;
  /// A limit for all walks together: a hostile guest could let each of many processes have the same
  /// endless list of threads.
  std::size_t steps_left_ = 2 * kMost;
};

}  // namespace ringside::guest_linux
