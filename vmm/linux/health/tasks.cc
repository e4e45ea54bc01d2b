// In this file, top to bottom: one task, the lists, stacks.
#include "vmm/linux/health/tasks.h"

#include <algorithm>
#include <array>

#include "vmm/arch/arch.h"
#include "vmm/linux/constants.h"

namespace ringside::guest_linux {
namespace {

// include/linux/sched.h; unchanged since 4.14.
constexpr std::uint64_t kInterruptible = 1, kUninterruptible = 2, kStopped = 4, kTraced = 8,
                        kDead = 0x80, kNoLoad = 0x400, kRtLockWait = 0x1000;
constexpr std::uint64_t kExitDead = 0x10, kExitZombie = 0x20;
constexpr std::uint64_t kKernelThread = 0x20'0000;  // PF_KTHREAD
constexpr std::uint64_t kUsualStack = 16 << 10;     // THREAD_SIZE without KASAN

/// __switch_to_asm() leaves these words at the saved stack pointer: r15, r14, r13, r12, rbx, rbp,
/// the return address.
constexpr std::size_t kSavedWords = 7, kSavedBx = 4, kSavedBp = 5, kSavedReturn = 6;

}  // namespace

char letter_of(TaskState state) {
  switch (state) {
    case TaskState::Running: return 'R';
    case TaskState::Sleeping: return 'S';
    case TaskState::Uninterruptible: return 'D';
    case TaskState::Idle: return 'I';
    case TaskState::Stopped: return 'T';
    case TaskState::Dead: return 'Z';
    case TaskState::Other: return '?';
  }
  return '?';
}

Tasks::Tasks(const KernelView& view, const Clocks& clocks, const StackTables& stacks)
    : view_(view), clocks_(clocks), stacks_(stacks) {
  const auto task = [&](auto... paths) { return view.field("task_struct", {paths...}); };
  pid_ = task("pid");
  tgid_ = task("tgid");
  comm_ = task("comm");
  state_ = task("__state", "state");
  exit_state_ = task("exit_state");
  flags_ = task("flags");
  on_cpu_ = task("on_cpu");
  stack_ = task("stack");
  saved_sp_ = task("thread.sp");
  io_wait_ = task("in_iowait");
  policy_ = task("policy");
  priority_ = task("rt_priority");
  cpu_ = task("thread_info.cpu", "cpu");
  last_arrival_ = task("sched_info.last_arrival");
  last_queued_ = task("sched_info.last_queued");
  exec_start_ = task("se.exec_start");
  signal_ = task("signal");
  next_ = task("tasks");
  list_ = TaskListLayout::from(view.types());
  oom_mm_ = view.field("signal_struct", "oom_mm");
  const std::uint64_t size = view.size_of("thread_union");
  stack_bytes_ = size >= arch::kPageSize && size <= 1 << 20 ? size : kUsualStack;
}

TaskState Tasks::state_of(GuestVirt task) const {
  const std::uint64_t exited = view_.value(task, exit_state_).value_or(0);
  if ((exited & (kExitDead | kExitZombie)) != 0) return TaskState::Dead;
  const auto state = view_.value(task, state_);
  if (!state) return TaskState::Other;
  // A real-time kernel's spin lock; /proc shows it as D, too.
  if ((*state & kRtLockWait) != 0) return TaskState::Uninterruptible;
  if ((*state & (kInterruptible | kUninterruptible | kStopped | kTraced | kDead)) == 0) {
    return TaskState::Running;
  }
  if ((*state & kDead) != 0) return TaskState::Dead;
  if ((*state & (kStopped | kTraced)) != 0) return TaskState::Stopped;
  if ((*state & kUninterruptible) == 0) return TaskState::Sleeping;
  return (*state & kNoLoad) != 0 ? TaskState::Idle : TaskState::Uninterruptible;
}

/// A task that left its CPU was last accounted then (update_curr()); one that wants a CPU was
/// queued at last_queued; one that runs came at last_arrival (CONFIG_SCHED_INFO).
std::optional<std::uint64_t> Tasks::since(GuestVirt address, const Task& task) const {
  const auto arrival = view_.value(address, last_arrival_);
  if (task.is_on_cpu) return clocks_.since(arrival);
  if (task.state == TaskState::Running) return clocks_.since(view_.value(address, last_queued_));
  const std::uint64_t accounted = view_.value(address, exec_start_).value_or(0);
  return clocks_.since(std::max(accounted, arrival.value_or(0)));
}

std::optional<Task> Tasks::read(GuestVirt address) const {
  const auto pid = view_.value(address, pid_);
  const auto process = view_.value(address, tgid_);
  if (!pid || !process || !comm_) return std::nullopt;
  Task task;
  task.address = address;
  task.pid = static_cast<std::int64_t>(*pid);
  task.process = static_cast<std::int64_t>(*process);
  task.name = view_.text(address.wrapping_add(comm_->offset), kCommBytes);
  task.state = state_of(address);
  task.is_on_cpu = view_.value(address, on_cpu_).value_or(0) != 0;
  task.is_kernel_thread = (view_.value(address, flags_).value_or(0) & kKernelThread) != 0;
  task.waits_for_io = view_.value(address, io_wait_).value_or(0) != 0;
  task.stack_base = view_.pointer(address, stack_).value_or(GuestVirt());
  if (const auto cpu = view_.value(address, cpu_); cpu && *cpu < view_.cpu_count()) {
    task.cpu = static_cast<std::uint32_t>(*cpu);
  }
  if (const auto policy = view_.value(address, policy_)) {
    task.policy = static_cast<std::uint32_t>(*policy);
  }
  task.priority = view_.value(address, priority_);
  task.since = since(address, task);
  const auto signal = view_.pointer(address, signal_);
  task.is_oom_victim = signal && view_.pointer(*signal, oom_mm_).has_value();
  return task;
}

const Task* Tasks::find(GuestVirt address) const {
  const auto found = by_address_.find(address.raw());
  return found == by_address_.end() ? nullptr : &tasks_[found->second];
}

void Tasks::add(GuestVirt address) {
  if (by_address_.contains(address.raw())) return;
  auto task = read(address);
  if (!task || task->state == TaskState::Dead) return;
  by_address_.emplace(address.raw(), tasks_.size());
  tasks_.push_back(std::move(*task));
}

void Tasks::add_threads(GuestVirt leader) {
  add(leader);
  if (!list_) return;
  const auto end = walk_threads(view_.reader(), *list_, leader, steps_left_, [&](GuestVirt task) {
    --steps_left_;
    add(task);
    return tasks_.size() < kMost && steps_left_ > 0;
  });
  complete_ = complete_ && end == ListEnd::Whole;
}

void Tasks::list() {
  const auto init = view_.symbol("init_task");
  if (!init || !next_) {
    complete_ = false;
    return;
  }
  const auto end =
      walk_processes(view_.reader(), next_->offset, *init, kMost, [&](GuestVirt leader) {
        add_threads(leader);
        return tasks_.size() < kMost && steps_left_ > 0;
      });
  complete_ = complete_ && end == ListEnd::Whole;
}

std::optional<GuestVirt> Tasks::saved_stack_pointer(const Task& task) const {
  const auto saved = view_.pointer(task.address, saved_sp_);
  if (!saved || !saved->is_in(task.stack_base, stack_bytes_ - kSavedWords * 8)) return std::nullopt;
  return saved;
}

std::vector<Frame> Tasks::sleeping_stack(const Task& task) const {
  const auto saved = saved_stack_pointer(task);
  if (!saved) return {};
  const auto words = view_.load<std::array<std::uint64_t, kSavedWords>>(*saved);
  if (!words) return {};
  Registers registers;
  registers.*arch::kStackPointer = saved->wrapping_add(kSavedReturn * 8).raw();
  registers.*arch::kFramePointer = (*words)[kSavedBp];
  registers.rbx = (*words)[kSavedBx];
  return frames(registers, WalkStart::Caller);
}

std::vector<Frame> Tasks::running_stack(const Registers& registers) const {
  return frames(registers, WalkStart::Here);
}

std::vector<Frame> Tasks::frames(const Registers& from, WalkStart start) const {
  std::array<std::uint64_t, kMostFrames> found{};
  const std::size_t count = unwind(stacks_, view_.reader(), from, start, found);
  std::vector<Frame> frames;
  for (const std::uint64_t address : std::span(found).first(count)) {
    frames.push_back({address, view_.code_name(address)});
  }
  return frames;
}

}  // namespace ringside::guest_linux
