// The processes and threads of a guest, as ps shows them.
// Source: struct task_struct, cred, signal_struct (include/linux/sched.h, cred.h, sched/signal.h);
// the lists init_task.tasks and signal->thread_head. State: __state (state before 5.14) and
// exit_state, in the letters of /proc/PID/stat (fs/proc/array.c). CPU time: se.sum_exec_runtime of
// all threads and signal->sum_sched_runtime of those that have ended. Resident memory:
// mm->rss_stat, which is atomic counters up to 6.1 and a percpu_counter each since 6.2. Control
// group: task->cgroups->dfl_cgrp, by kernfs names; where that is the root, the first of the
// hierarchies of version 1 in which it is not. Command line: mm->arg_start to arg_end in the
// process's own memory (fs/proc/base.c, get_mm_cmdline()).
// Used by `ps`, `top`, and lists of files and sockets. Hostile input: bounded; raw bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "vmm/linux/listing/listing.h"

namespace ringside::guest_linux {

struct TaskRow {
  GuestVirt task;            // struct task_struct
  std::int64_t process = 0;  // tgid
  std::int64_t thread = 0;   // pid; the same for the first thread
  std::int64_t parent = 0;   // the process that is it, 0 for none
  std::uint32_t uid = 0;     // effective
  char state = '?';          // R S D T t X Z P I
  bool is_kernel_thread = false;
  std::int32_t nice = 0;
  std::uint32_t last_cpu = 0;
  std::uint32_t threads = 1;                 // of the process
  std::uint64_t cpu_time = 0;                // ns; of all its threads, or of the one
  std::uint64_t started = 0;                 // ns since boot, without the time asleep
  std::optional<std::uint64_t> age;          // ns; as old as the guest's clocks say
  std::optional<std::uint64_t> resident;     // bytes; empty: it has no memory of its own
  std::string name;                          // comm
  std::string command;                       // its words, NULs between; empty: not in memory
  std::optional<std::string> control_group;  // "/system.slice/ssh.service"; empty: not known
  std::optional<GuestVirt> files, paths;     // struct files_struct, fs_struct
  std::optional<GuestVirt> memory;           // struct mm_struct
};

enum class TaskDetail : std::uint8_t {
  Processes,       // a row for each
  Threads,         // a row for each thread
  ProcessesBrief,  // no command line, no control group
};

/// In the order of process and thread numbers. Unsupported where the kernel's types do not say
/// enough.
Result<Listing<TaskRow>> list_tasks(const ListedGuest& guest, TaskDetail detail);

}  // namespace ringside::guest_linux
