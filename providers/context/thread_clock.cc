#include "providers/context/thread_clock.h"

#include <algorithm>

#include "providers/clock/tsc_scale.h"
#include "vmm/linux/kernel_variables.h"
#include "vmm/linux/layout.h"

namespace ringside::providers {
namespace {

using guest_linux::load_field;

std::optional<TickRate> rate_of_tsc(const guest_linux::Kernel& kernel, const GuestReader& memory) {
  const auto hertz = plausible_hertz(guest_linux::tsc_khz(kernel, memory));
  return hertz ? std::optional<TickRate>(*hertz) : std::nullopt;
}

}  // namespace

std::optional<GuestVirt> ThreadClock::run_queues(const guest_linux::Kernel& kernel) {
  const guest_linux::Symbol* queues = kernel.symbols().find("runqueues", "vmlinux");
  return queues != nullptr ? std::optional(queues->address) : std::nullopt;
}

std::optional<ThreadClock::Offsets> ThreadClock::offsets_of(const guest_linux::Kernel& kernel) {
  const guest_linux::KernelLayout& in = kernel.layout();
  const auto queues = run_queues(kernel);
  const bool has_all = queues && in.rq_clock && in.rq_clock_task && in.task_pid &&
                       in.task_sum_exec_runtime && in.task_exec_start;
  if (!has_all) return std::nullopt;
  return Offsets{
      queues->raw(),      *in.rq_clock, *in.rq_clock_task, *in.task_pid, *in.task_sum_exec_runtime,
      *in.task_exec_start};
}

ThreadClock::ThreadClock(const guest_linux::Kernel& kernel, const GuestReader& memory,
                         RunTimes& shared)
    : offsets_(offsets_of(kernel)),
      rate_(rate_of_tsc(kernel, memory)),
      preempt_count_(guest_linux::preempt_count_offset(kernel.symbols(), kernel.types())),
      shared_(shared) {}

bool ThreadClock::is_in_interrupt(const GuestReader& memory, GuestVirt percpu_base) const {
  if (!preempt_count_) return false;
  const auto count = load<std::uint32_t>(memory, percpu_base.wrapping_add(*preempt_count_));
  return count && guest_linux::is_in_interrupt(*count);
}

void ThreadClock::waited(const GuestReader& memory, GuestVirt percpu_base,
                         const RunTimes::Thread& task, std::uint64_t nanoseconds) {
  if (!shared_.is_asked()) return;
  if (keeps_interrupts_apart_ && is_in_interrupt(memory, percpu_base)) return;
  shared_.waited(task, nanoseconds);
}

/// The CPU's clock of tasks. All of it is the guest's word: differences wrap.
std::uint64_t ThreadClock::clock_at(std::uint64_t tsc, const RunQueue& queue) {
  const std::uint64_t time = rate_->nanoseconds(tsc);
  const std::uint64_t seen = queue.clock - time;
  const auto since_update = static_cast<std::int64_t>(ahead_.value_or(seen) - seen);
  if (!ahead_ || since_update < 0 || since_update > kLongest) ahead_ = seen;
  return time + *ahead_ - (queue.clock - queue.clock_task);
}

Result<std::uint64_t, Fault> ThreadClock::ran(const GuestReader& memory, GuestVirt percpu_base,
                                              GuestVirt task,
                                              const std::optional<TrapMoment>& when) {
  if (!offsets_) return tl::make_unexpected(Fault{FaultKind::IllegalOperation, 0, 0});
  const auto id = TRY(load_field<std::int32_t>(memory, task, offsets_->pid));
  if (id == 0) return 0;  // the scheduler keeps no time of an idle task
  auto sum = TRY(load_field<std::uint64_t>(memory, task, offsets_->sum));
  const auto start = TRY(load_field<std::uint64_t>(memory, task, offsets_->exec_start));
  const GuestVirt at = percpu_base.wrapping_add(offsets_->queues);
  const RunQueue queue{TRY(load_field<std::uint64_t>(memory, at, offsets_->clock)),
                       TRY(load_field<std::uint64_t>(memory, at, offsets_->clock_task))};
  keeps_interrupts_apart_ = queue.clock != queue.clock_task;
  if (when && rate_) {
    const auto more = static_cast<std::int64_t>(clock_at(when->tsc, queue) - start);
    sum += static_cast<std::uint64_t>(std::clamp<std::int64_t>(more, 0, kLongest));
  }
  const auto time = when ? std::optional(when->time) : std::nullopt;
  return shared_.show({task, id}, sum, time);
}

}  // namespace ringside::providers
