#include "providers/dispatch/pending_returns.h"

#include <algorithm>

namespace ringside::providers {
namespace {

/// Keeps those of the first `count` that are not `gone`; how many.
template <class Gone>
std::uint32_t without(std::span<PendingReturn> waiting, Gone gone) {
  return static_cast<std::uint32_t>(std::remove_if(waiting.begin(), waiting.end(), gone) -
                                    waiting.begin());
}

}  // namespace

/// Whether the task has left that frame: it is further up on the same stack. One that an interrupt
/// has changed to lies anywhere.
bool PendingReturns::is_left(const PendingReturn& one, std::uint64_t stack_pointer) const {
  const bool is_one_stack = ((one.stack_pointer ^ stack_pointer) & ~(stack_bytes_ - 1)) == 0;
  return is_one_stack && one.stack_pointer < stack_pointer;
}

void PendingReturns::forget_left(Task& task, const TaskMoment& at) const {
  if (task.tid != at.tid) task.count = 0;
  task.tid = at.tid;
  task.count = without(std::span(task.waiting).first(task.count),
                       [&](const PendingReturn& one) { return is_left(one, at.stack_pointer); });
}

/// At this place of its stack the task leaves `function` by a jump. That may be what those which
/// wait there have jumped to; else they wait in vain.
void PendingReturns::forget_others(Task& task, std::uint64_t stack_pointer, GuestVirt function) {
  const auto waiting = std::span(task.waiting).first(task.count);
  const auto last = std::find_if(waiting.rbegin(), waiting.rend(), [&](const PendingReturn& one) {
    return one.stack_pointer == stack_pointer;
  });
  if (last == waiting.rend()) return;
  if (std::ranges::binary_search(last->tail_call->through, function)) return;
  task.count = without(
      waiting, [&](const PendingReturn& one) { return one.stack_pointer == stack_pointer; });
}

/// Held; null: there is none.
KeyedSlots<PendingReturns::Task>::Slot* PendingReturns::slot_for(const TaskMoment& at) {
  if (auto* const known = tasks_.find(at.task)) return known;
  const auto claimed = tasks_.claim(at.task);
  if (claimed.slot == nullptr) return nullptr;
  Task& task = claimed.slot->value;
  if (claimed.displaced) displaced_.fetch_add(task.count, std::memory_order_relaxed);
  task.count = 0;
  return claimed.slot;
}

bool PendingReturns::wait(const TaskMoment& at, std::span<const Binding> jump) {
  if (jump.empty() || jump.size() > kMostOfTask) return false;
  auto* const slot = slot_for(at);
  if (slot == nullptr) return false;
  Task& task = slot->value;
  forget_left(task, at);
  forget_others(task, at.stack_pointer, jump.front().tail_call->from);
  const bool fits = task.count + jump.size() <= kMostOfTask;
  for (std::size_t n = 0; fits && n < jump.size(); ++n) {
    const Binding& one = jump[n];
    task.waiting[task.count++] = {at.stack_pointer, one.plan, one.tail_call, one.probe, one.site};
  }
  tasks_.keep(*slot, at.task);
  return fits;
}

PendingReturns::Ended PendingReturns::end(const TaskMoment& at,
                                          std::span<const dif::ProbeId> probes, Role role) {
  Ended ended;
  auto* const slot = tasks_.find(at.task);
  if (slot == nullptr) return ended;
  Task& task = slot->value;
  forget_left(task, at);
  const auto is_here = [&](const PendingReturn& one) {
    return one.stack_pointer == at.stack_pointer;
  };
  const auto ends = [&](const PendingReturn& one) {
    return is_here(one) && std::ranges::binary_search(probes, one.probe);
  };
  const auto waiting = std::span(task.waiting).first(task.count);
  for (std::size_t n = waiting.size(); n-- > 0;) {
    if (ends(waiting[n])) ended.returns[ended.count++] = waiting[n];
  }
  task.count = role == Role::Ends ? without(waiting, is_here) : without(waiting, ends);
  if (task.count == 0) {
    tasks_.free(*slot);
  } else {
    tasks_.keep(*slot, at.task);
  }
  return ended;
}

}  // namespace ringside::providers
