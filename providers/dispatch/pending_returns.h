// Returns that are still to come. A function that ends in a jump to another function (a tail call)
// returns when that other function returns. A pending return is found by its task, because the task
// may sleep and move to another CPU between the jump and the return. It is also found by the stack
// pointer, which points at the return address both at the jump and at the return.
//
// Some returns never come: the task died inside, or a trap was missed. Such an entry must not match
// another return later. So a task's entry is dropped when the task is seen further up on that
// stack, when the task leaves another function by a jump at the same place of the stack, or when
// the pid differs. In the end, newer entries push it out.
// Used by the dispatcher. Threads: any; of one task one at a time. Fire context: yes, but for the
// constructor.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "providers/context/binding.h"
#include "providers/dispatch/keyed_slots.h"

namespace ringside::providers {

struct PendingReturn {
  std::uint64_t stack_pointer = 0;
  const ArgumentPlan* plan = nullptr;
  const TailCall* tail_call = nullptr;
  dif::ProbeId probe;
  std::uint32_t site = 0;
};

class PendingReturns {
 public:
  static constexpr std::size_t kMostOfTask = 16;
  /// The returns that end at one moment.
  struct Ended {
    std::array<PendingReturn, kMostOfTask> returns;
    std::size_t count = 0;

    std::span<const PendingReturn> all() const { return std::span(returns).first(count); }
  };

  /// `stack_bytes`: the size of kernel stacks, a power of two, to which they are aligned.
  explicit PendingReturns(std::uint64_t stack_bytes) : stack_bytes_(stack_bytes), tasks_(kTasks) {}

  /// A function has jumped to another one: these bindings, all of that jump, wait from now on.
  /// False: there is no room for them.
  bool wait(const TaskMoment& at, std::span<const Binding> jump);
  /// At a way out (Role::Ends, EndsUnknown) of a function to which the functions of these `probes`
  /// (sorted) jump: takes those that waited for it, the last first. After a return nothing waits
  /// there any more.
  Ended end(const TaskMoment& at, std::span<const dif::ProbeId> probes, Role role);
  /// How many were pushed out, which may have been waited for in vain already.
  std::uint64_t displaced() const { return displaced_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kTasks = 1 << 12;
  struct Task {
    std::int32_t tid = 0;
    std::uint32_t count = 0;
    std::array<PendingReturn, kMostOfTask> waiting;  // the last is the innermost
  };

  bool is_left(const PendingReturn& one, std::uint64_t stack_pointer) const;
  KeyedSlots<Task>::Slot* slot_for(const TaskMoment& at);
  void forget_left(Task& task, const TaskMoment& at) const;
  static void forget_others(Task& task, std::uint64_t stack_pointer, GuestVirt function);

  const std::uint64_t stack_bytes_;
  KeyedSlots<Task> tasks_;
  std::atomic<std::uint64_t> displaced_ = 0;
};

}  // namespace ringside::providers
