// The kernel's list of tasks, walked: all processes, by init_task.tasks, and each one's threads, by
// signal_struct.thread_head. Callers read the tasks themselves.
// Source: struct task_struct (include/linux/sched.h), struct signal_struct
// (include/linux/sched/signal.h); the same since 3.14.
// Hostile input, and the guest may change it meanwhile: every walk is bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "vmm/base/c_type.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel_list.h"

namespace ringside::guest_linux {

/// Byte offsets in the kernel's structures.
struct TaskListLayout {
  std::uint32_t task_tasks = 0, task_signal = 0, task_thread_node = 0, signal_thread_head = 0;

  /// Empty when the kernel's types do not describe all of it.
  static std::optional<TaskListLayout> from(const TypeGraph& types);
};

/// The first thread of each process, kernel threads included. Not init_task, the idle task of the
/// first CPU: the list begins there.
ListEnd walk_processes(const GuestReader& kernel, std::uint32_t task_tasks, GuestVirt init_task,
                       std::size_t most, const ListVisitor& visit);

/// All threads of the process, its first one included. None for init_task, which is in no such
/// list, and for one that has ended.
ListEnd walk_threads(const GuestReader& kernel, const TaskListLayout& layout, GuestVirt leader,
                     std::size_t most, const ListVisitor& visit);

}  // namespace ringside::guest_linux
