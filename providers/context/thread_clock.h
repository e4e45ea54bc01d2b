// How long the thread that runs on a CPU has run (vtimestamp).
//
// The scheduler adds to a thread's time at ticks and switches only (update_curr() of
// kernel/sched/fair.c). The time since then is worked out:
//   se.sum_exec_runtime + (the CPU's task clock now - se.exec_start)
//
// The CPU's clock (struct rq's `clock`, ns) is known for its last update only. It runs as fast as
// the guest's TSC. Each firing sees how far the clock is ahead of the TSC; the largest difference
// so far is used. It is too small by at most the time since an update, and never too large. More
// firings make it better.
//
// Time in interrupts belongs to no thread, where the kernel tells it apart: `clock` less
// `clock_task`.
//
// One for each CPU, used under that CPU's firing lock. Fire context: yes, but for the constructor.
#pragma once

#include <cstdint>
#include <optional>

#include "providers/clock/guest_clock.h"
#include "providers/context/run_times.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

/// When a probe fired.
struct TrapMoment {
  std::uint64_t tsc = 0;   // the guest's
  std::uint64_t time = 0;  // on the time line, ns
};

class ThreadClock {
 public:
  /// `memory` is the kernel's, for its idea of the TSC's rate; without that, times are those of
  /// the scheduler's last update. `shared`, the machine's, must outlive this.
  ThreadClock(const guest_linux::Kernel& kernel, const GuestReader& memory, RunTimes& shared);

  /// Where the struct rq of a CPU lies, counted from its per-CPU base; wraps since 6.15, where this
  /// is an ordinary address and the base a difference. Empty for a kernel without the symbol.
  static std::optional<GuestVirt> run_queues(const guest_linux::Kernel& kernel);

  /// Nanoseconds that `task`, which runs on the CPU with this per-CPU base, has run at this moment;
  /// when that is not known, at the last update. 0 for an idle task. Never less for a task than
  /// before. Fault: memory that cannot be read, or a kernel whose types lack a member.
  Result<std::uint64_t, Fault> ran(const GuestReader& memory, GuestVirt percpu_base, GuestVirt task,
                                   const std::optional<TrapMoment>& when);
  /// `task`, which runs on that CPU, has waited this long (ns) for a firing. The wait is not its
  /// run time. If the kernel accounts interrupts separately and the task was in one, the wait is
  /// not in the task's account either.
  void waited(const GuestReader& memory, GuestVirt percpu_base, const RunTimes::Thread& task,
              std::uint64_t nanoseconds);

 private:
  /// Nothing runs for longer than this without an update, which each tick is (ns). An estimate that
  /// says so is of a TSC that has been set since.
  static constexpr std::int64_t kLongest = 2'000'000'000;

  /// The CPU's clocks at their last update (ns).
  struct RunQueue {
    std::uint64_t clock = 0, clock_task = 0;
  };
  struct Offsets {
    std::uint64_t queues = 0;                        // of the per-CPU variable runqueues
    std::uint32_t clock = 0, clock_task = 0;         // in struct rq
    std::uint32_t pid = 0, sum = 0, exec_start = 0;  // in struct task_struct
  };
  static std::optional<Offsets> offsets_of(const guest_linux::Kernel& kernel);
  bool is_in_interrupt(const GuestReader& memory, GuestVirt percpu_base) const;
  std::uint64_t clock_at(std::uint64_t tsc, const RunQueue& queue);

  const std::optional<Offsets> offsets_;  // empty: the kernel lacks one
  const std::optional<TickRate> rate_;
  const std::optional<std::uint64_t> preempt_count_;  // per CPU
  bool keeps_interrupts_apart_ = false;               // as the last look has shown
  std::optional<std::uint64_t> ahead_;  // the CPU's clock less the TSC's nanoseconds; wraps
  RunTimes& shared_;
};

}  // namespace ringside::providers
