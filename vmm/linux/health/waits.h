// The waits of tasks that sleep in the kernel: what each waits for, and who holds it.
// A lock is found by what the waiter itself has on its stack: a struct mutex_waiter or rwsem_waiter
// (kernel/locking/mutex.h, rwsem.c), or for a per-CPU rw-semaphore a wait_queue_entry
// (kernel/locking/percpu-rwsem.c), is linked with those of the other waiters into the list of the
// lock. The one node of that list that is on no waiter's stack is the lock's own. Since 7.1 locks
// have no list head; there, the lock is the word on the stack that points back to the waiters. Some
// kernels name the lock themselves: task_struct's blocker (6.16) or blocked_on.
// Owners: mutex.owner and rw_semaphore.owner, whose low bits are flags.
// Of real-time kernels (PREEMPT_RT) mutexes, rw-semaphores and spin locks that sleep are rt_mutexes
// (kernel/locking/rtmutex_common.h, include/linux/rwbase_rt.h): the task points at its waiter
// (pi_blocked_on), and the waiter at its lock. A writer that waits for readers has no waiter: it
// holds the semaphore's rt_mutex already. Used by examine(). Hostile input: lists are bounded, a
// lock is believed only when its list closes and its owner is a task.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vmm/linux/health/kernel_view.h"
#include "vmm/linux/health/report.h"
#include "vmm/linux/health/tasks.h"

namespace ringside::guest_linux {

class Waits {
 public:
  /// All must outlive this. `frozen`: the file systems that are.
  Waits(const KernelView& view, const Tasks& tasks, const std::vector<FilesystemReport>& frozen);

  /// The wait of a task that sleeps, by its stack.
  Wait find(const Task& task, const std::vector<Frame>& stack) const;

 private:
  /// A kind of lock and of what waits for it.
  struct Shape {
    LockKind kind;
    std::optional<Field> node, task;  // in the waiter
    std::optional<Field> head;        // the list in the lock
    std::optional<Field> first;       // instead of a head, since 7.1: a pointer to a waiter
    std::optional<Field> owner;
  };
  struct Words {
    GuestVirt base;
    std::vector<std::uint64_t> words;
  };

  bool look_for_rt_mutex(const Task& task, const std::vector<Frame>& stack, Wait& wait) const;
  std::optional<GuestVirt> semaphore_of_writer(const Task& task) const;
  std::optional<GuestVirt> find_lock(const Task& task, const Shape& shape) const;
  std::optional<GuestVirt> lock_of_waiter(const Shape& shape, GuestVirt waiter,
                                          const Words& stack) const;
  std::optional<GuestVirt> told_lock(const Task& task, const Shape& shape) const;
  bool is_waiter(const Shape& shape, GuestVirt waiter) const;
  Words stack_of(const Task& task) const;
  void name_lock(Wait& wait) const;
  void find_owner(Wait& wait, const Shape& shape) const;
  void look_for_frozen(Wait& wait) const;

  const KernelView& view_;
  const Tasks& tasks_;
  const std::vector<FilesystemReport>& frozen_;
  Shape mutex_, rw_semaphore_, percpu_;
  std::optional<Field> blocker_, blocked_on_;
  /// Members for rt_mutexes: a task's waiter, the waiter's task and lock, the lock's owner, the
  /// rt_mutex in a rw-semaphore, and the count of its readers. A kernel without the last two is not
  /// a real-time kernel.
  struct RtMutex {
    std::optional<Field> waiter, task, lock, owner, in_semaphore, readers;
  };
  RtMutex rt_;
  std::uint64_t super_block_bytes_;
  /// A limit for all lists of waiters together: many words of a stack may each point at a long
  /// list.
  mutable std::size_t steps_left_ = 1 << 21;
};

/// The function of a frame, without offset and module.
std::string_view function_of(const Frame& frame);
/// The first frame that is not the scheduler's own: in which the task sleeps.
const Frame* sleeping_frame(const std::vector<Frame>& stack);

}  // namespace ringside::guest_linux
