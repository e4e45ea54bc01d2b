// In this file, top to bottom: what stacks say, where waiters and locks lie, locks, owners.
#include "vmm/linux/health/waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "vmm/arch/arch.h"
#include "vmm/linux/constants.h"

namespace ringside::guest_linux {
namespace {

constexpr std::size_t kMostWaiters = 4096;
constexpr std::uint64_t kReaderOwned = 1;  // RWSEM_READER_OWNED

template <std::size_t kCount>
bool is_one_of(std::string_view name, const std::array<std::string_view, kCount>& names) {
  return std::ranges::find(names, name) != names.end();
}

bool has_frame(const std::vector<Frame>& stack, std::string_view start) {
  return std::ranges::any_of(
      stack, [&](const Frame& frame) { return function_of(frame).starts_with(start); });
}

/// The purpose, other than a lock, for which the functions on a task's stack wait.
Wait::For purpose_of(const std::vector<Frame>& stack, bool for_io) {
  // Innermost first: a write-back that waits for a lock waits for the lock.
  for (const Frame& frame : stack) {
    const std::string_view name = function_of(frame);
    if (name.starts_with("wait_for_completion") || name.starts_with("__wait_for_common")) {
      return for_io ? Wait::For::Io : Wait::For::Completion;
    }
    if (name == "throttle_direct_reclaim" || name.starts_with("__alloc_pages_slowpath") ||
        name == "out_of_memory" || name.starts_with("mem_cgroup_handle_over_high")) {
      return Wait::For::Memory;
    }
    if (name == "io_schedule" || name.starts_with("folio_wait_") || name == "bit_wait_io" ||
        name.starts_with("wait_on_page") || name.starts_with("blk_mq_get_tag") ||
        name == "rq_qos_wait" || name == "blk_queue_enter" || name.starts_with("__blk_mq_")) {
      return Wait::For::Io;
    }
  }
  return for_io ? Wait::For::Io : Wait::For::Unknown;
}

}  // namespace

std::string_view function_of(const Frame& frame) {
  const std::string_view text = frame.text;
  return text.substr(0, text.find('+'));
}

const Frame* sleeping_frame(const std::vector<Frame>& stack) {
  constexpr std::array<std::string_view, 15> kScheduler{"__schedule",
                                                        "schedule",
                                                        "schedule_timeout",
                                                        "io_schedule",
                                                        "io_schedule_timeout",
                                                        "schedule_preempt_disabled",
                                                        "schedule_rtlock",
                                                        "__cond_resched",
                                                        "preempt_schedule",
                                                        "preempt_schedule_common",
                                                        "schedule_hrtimeout_range",
                                                        "schedule_hrtimeout_range_clock",
                                                        "__switch_to_asm",
                                                        "schedule_timeout_uninterruptible",
                                                        "preempt_schedule_irq"};
  const auto found = std::ranges::find_if(stack, [&](const Frame& frame) {
    const std::string_view name = function_of(frame);
    // The functions that wait for a completion tell nothing; their caller does.
    return !is_one_of(name, kScheduler) && !name.starts_with("__wait_for_common") &&
           !name.starts_with("wait_for_completion");
  });
  return found == stack.end() ? nullptr : &*found;
}

Waits::Waits(const KernelView& view, const Tasks& tasks,
             const std::vector<FilesystemReport>& frozen)
    : view_(view), tasks_(tasks), frozen_(frozen) {
  mutex_ = {LockKind::Mutex,
            view.field("mutex_waiter", "list"),
            view.field("mutex_waiter", "task"),
            view.field("mutex", "wait_list"),
            view.field("mutex", "first_waiter"),
            view.field("mutex", "owner.counter")};
  rw_semaphore_ = {LockKind::RwSemaphore,
                   view.field("rwsem_waiter", "list"),
                   view.field("rwsem_waiter", "task"),
                   view.field("rw_semaphore", "wait_list"),
                   view.field("rw_semaphore", "first_waiter"),
                   view.field("rw_semaphore", "owner.counter")};
  percpu_ = {LockKind::PercpuRwSemaphore,
             view.field("wait_queue_entry", "entry"),
             view.field("wait_queue_entry", "private"),
             view.field("percpu_rw_semaphore", "waiters.head"),
             std::nullopt,
             std::nullopt};
  blocker_ = view.field("task_struct", "blocker");
  blocked_on_ = view.field("task_struct", "blocked_on");
  rt_ = {view.field("task_struct", "pi_blocked_on"),
         view.field("rt_mutex_waiter", "task"),
         view.field("rt_mutex_waiter", "lock"),
         view.field("rt_mutex_base", "owner"),
         view.field("rw_semaphore", "rwbase.rtmutex"),
         view.field("rw_semaphore", "rwbase.readers.counter")};
  super_block_bytes_ = view.size_of("super_block");
}

namespace {

/// By the function that took it: all of them sleep in the same ones.
LockKind kind_of_rt_mutex(const std::vector<Frame>& stack) {
  for (const Frame& frame : stack) {
    const std::string_view name = function_of(frame);
    if (name.starts_with("rt_spin_lock") || name.starts_with("rtlock_") ||
        name.starts_with("rt_read_lock") || name.starts_with("rt_write_lock")) {
      return LockKind::SpinLock;
    }
    if (name.starts_with("rwbase_") || name.starts_with("__rwbase_") ||
        name.starts_with("down_read") || name.starts_with("down_write")) {
      return LockKind::RwSemaphore;
    }
  }
  return LockKind::Mutex;
}

}  // namespace

/// The rw-semaphore that a writer has for itself but for the readers that it waits for.
std::optional<GuestVirt> Waits::semaphore_of_writer(const Task& task) const {
  constexpr std::uint64_t kReaderBias = 1U << 31;
  for (const std::uint64_t word : stack_of(task).words) {
    const GuestVirt at(word);
    if (!arch::in_kernel_half(at) || word % 8 != 0) continue;
    const auto owner = view_.value(at.wrapping_add(rt_.in_semaphore->offset), rt_.owner);
    const auto readers = view_.value(at, rt_.readers);
    const bool is_its = owner && (*owner & ~kRtMutexHasWaiters) == task.address.raw();
    // Writers have taken the bias away, so that no reader comes any more.
    if (is_its && readers && *readers != 0 && (*readers & kReaderBias) == 0) return at;
  }
  return std::nullopt;
}

/// Fills the wait for one; false where the task waits for none.
bool Waits::look_for_rt_mutex(const Task& task, const std::vector<Frame>& stack, Wait& wait) const {
  const LockKind kind = kind_of_rt_mutex(stack);
  const auto waiter = view_.pointer(task.address, rt_.waiter);
  if (!waiter) {
    if (kind != LockKind::RwSemaphore || !rt_.in_semaphore || !rt_.readers) return false;
    wait.what = Wait::For::Lock;
    wait.lock_kind = kind;
    wait.is_read_held = true;
    wait.lock = semaphore_of_writer(task).value_or(GuestVirt());
    if (wait.lock.raw() != 0) name_lock(wait);
    return true;
  }
  const auto lock = view_.pointer(*waiter, rt_.lock);
  if (!lock || view_.value(*waiter, rt_.task) != task.address.raw()) return false;
  wait.what = Wait::For::Lock;
  wait.lock_kind = kind;
  wait.lock = *lock;
  if (kind == LockKind::RwSemaphore && rt_.in_semaphore) {
    wait.lock = lock->wrapping_sub(rt_.in_semaphore->offset);
  }
  name_lock(wait);
  const auto owner = view_.value(*lock, rt_.owner);
  const Task* holder = owner ? tasks_.find(GuestVirt(*owner & ~kRtMutexHasWaiters)) : nullptr;
  if (holder == nullptr) return true;
  wait.owner = holder->pid;
  wait.owner_task = holder->address;
  return true;
}

Wait Waits::find(const Task& task, const std::vector<Frame>& stack) const {
  Wait wait;
  if (const Frame* frame = sleeping_frame(stack)) wait.function = function_of(*frame);
  if (look_for_rt_mutex(task, stack, wait)) return wait;
  const Shape* shape = nullptr;
  if (has_frame(stack, "percpu_rwsem_wait") || has_frame(stack, "__percpu_down_read")) {
    shape = &percpu_;
  } else if (has_frame(stack, "rwsem_down_") || has_frame(stack, "__down_read") ||
             has_frame(stack, "__down_write")) {
    shape = &rw_semaphore_;
  } else if (has_frame(stack, "__mutex_lock") || has_frame(stack, "mutex_lock") ||
             has_frame(stack, "__ww_mutex_lock")) {
    shape = &mutex_;
  }
  if (shape == nullptr) {
    wait.what = purpose_of(stack, task.waits_for_io);
    return wait;
  }
  wait.what = Wait::For::Lock;
  wait.lock_kind = shape->kind;
  const auto lock = find_lock(task, *shape);
  if (!lock) return wait;
  wait.lock = *lock;
  name_lock(wait);
  find_owner(wait, *shape);
  if (shape == &percpu_) look_for_frozen(wait);
  return wait;
}

Waits::Words Waits::stack_of(const Task& task) const {
  const auto from = tasks_.saved_stack_pointer(task);
  if (!from) return {};
  // It lies on the stack: saved_stack_pointer() has checked that.
  const std::uint64_t in_use = tasks_.stack_bytes() - from->offset_from(task.stack_base);
  Words stack{*from, std::vector<std::uint64_t>(in_use / 8)};
  if (!view_.reader().read(*from, std::as_writable_bytes(std::span(stack.words)))) return {};
  return stack;
}

/// The lock that the kernel itself has written down. The two low bits of `blocker` are the kind of
/// lock (include/linux/hung_task.h): 0 a mutex, 2 and 3 a rw-semaphore.
std::optional<GuestVirt> Waits::told_lock(const Task& task, const Shape& shape) const {
  constexpr std::uint64_t kKind = 3;
  if (const auto told = view_.value(task.address, blocker_); told && *told != 0) {
    const bool is_mutex = (*told & kKind) == 0;
    const bool is_rw = (*told & kKind) >= 2;
    if ((is_mutex && shape.kind == LockKind::Mutex) ||
        (is_rw && shape.kind == LockKind::RwSemaphore)) {
      return GuestVirt(*told & ~kKind);
    }
  }
  if (shape.kind != LockKind::Mutex || !blocked_on_ || blocked_on_->bytes != 8) return std::nullopt;
  return view_.pointer(task.address, blocked_on_);
}

std::optional<GuestVirt> Waits::find_lock(const Task& task, const Shape& shape) const {
  if (const auto told = told_lock(task, shape)) return told;
  if (!shape.node || !shape.task || (!shape.head && !shape.first)) return std::nullopt;
  const Words stack = stack_of(task);
  for (std::size_t i = 0; i < stack.words.size(); ++i) {
    if (stack.words[i] != task.address.raw()) continue;
    const GuestVirt waiter = stack.base.wrapping_add(i * 8 - shape.task->offset);
    if (const auto lock = lock_of_waiter(shape, waiter, stack)) return lock;
  }
  return std::nullopt;
}

/// Whether a waiter of a known task lies there, on that task's own stack.
bool Waits::is_waiter(const Shape& shape, GuestVirt waiter) const {
  const auto address = view_.value(waiter, shape.task);
  const Task* task = address ? tasks_.find(GuestVirt(*address)) : nullptr;
  return task != nullptr && waiter.is_in(task->stack_base, tasks_.stack_bytes());
}

std::optional<GuestVirt> Waits::lock_of_waiter(const Shape& shape, GuestVirt waiter,
                                               const Words& stack) const {
  const GuestVirt start = waiter.wrapping_add(shape.node->offset);
  std::optional<GuestVirt> head;
  bool one_head = true;
  std::vector<std::uint64_t> waiters{waiter.raw()};
  GuestVirt previous = start;
  const std::size_t most = std::min(kMostWaiters, steps_left_);
  const bool closed = view_.walk_list(start, most, [&](GuestVirt node) {
    --steps_left_;
    // list_head: next, prev.
    if (view_.load<std::uint64_t>(node.wrapping_add(8)) != previous.raw()) return false;
    previous = node;
    const GuestVirt other = node.wrapping_sub(shape.node->offset);
    if (is_waiter(shape, other)) {
      waiters.push_back(other.raw());
    } else {
      one_head = one_head && !head;
      head = node;
    }
    return true;
  });
  if (!closed || !one_head) return std::nullopt;
  if (shape.head && head) return head->wrapping_sub(shape.head->offset);
  if (!shape.first || head) return std::nullopt;
  for (const std::uint64_t word : stack.words) {
    if (!arch::in_kernel_half(GuestVirt(word)) || word % 8 != 0) continue;
    const auto first = view_.value(GuestVirt(word), shape.first);
    if (first && std::ranges::find(waiters, *first) != waiters.end()) return GuestVirt(word);
  }
  return std::nullopt;
}

void Waits::name_lock(Wait& wait) const {
  const Symbol* symbol = view_.kernel().symbols().at(wait.lock);
  if (symbol == nullptr || symbol->is_text()) return;
  const std::uint64_t offset = wait.lock.offset_from(symbol->address);
  // Locks that were allocated lie after no symbol of theirs.
  if (symbol->size == 0 || offset >= symbol->size) return;
  wait.lock_name =
      offset == 0 ? std::string(symbol->name) : fmt::format("{}+{:#x}", symbol->name, offset);
}

void Waits::find_owner(Wait& wait, const Shape& shape) const {
  const auto owner = view_.value(wait.lock, shape.owner);
  if (!owner || *owner == 0) return;
  wait.is_read_held = shape.kind == LockKind::RwSemaphore && (*owner & kReaderOwned) != 0;
  const Task* task = tasks_.find(GuestVirt(*owner & ~kMutexFlags));
  if (task == nullptr) return;
  wait.owner = task->pid;
  wait.owner_task = task->address;
}

/// Freezing a file system holds its per-CPU semaphores (super_block.s_writers) for writing, on
/// nobody's behalf.
void Waits::look_for_frozen(Wait& wait) const {
  for (const FilesystemReport& filesystem : frozen_) {
    if (!wait.lock.is_in(filesystem.super_block, super_block_bytes_)) continue;
    wait.what = Wait::For::FrozenFilesystem;
    wait.filesystem = filesystem.device;
  }
}

}  // namespace ringside::guest_linux
