// The guest's own clocks as its memory shows them: the run queues' (sched_clock(), nanoseconds
// since boot) and jiffies. Both stand still while no CPU takes timer interrupts, so a time that
// they measure is a lower bound. A CPU takes no interrupts if its next timer is overdue by the
// clock that the other CPUs advance. Its run queue's clock may still go on, because other CPUs wake
// tasks there. Source: struct rq (kernel/sched/sched.h); INITIAL_JIFFIES (include/linux/jiffies.h);
// tick_next_period (kernel/time/tick-common.c) and hrtimer_cpu_base.expires_next
// (include/linux/hrtimer.h), both CLOCK_MONOTONIC.
// Used by the parts of a health report.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "vmm/linux/health/kernel_view.h"

namespace ringside::guest_linux {

class Clocks {
 public:
  /// `view` must outlive this. Asks the kernel's types and symbols, and reads.
  explicit Clocks(const KernelView& view);
  /// Reads what they show by now: on any thread, also after Kernel::end_set_up().
  void read();

  /// The latest of all run queues' clocks; empty when none can be read.
  std::optional<std::uint64_t> now() const { return now_; }
  /// For how long a CPU has let its timer wait while others moved the clock on; empty where it does
  /// not.
  std::optional<std::uint64_t> timer_overdue(std::uint32_t cpu) const;
  /// CLOCK_MONOTONIC as the tick has it: it is at least that.
  std::optional<std::uint64_t> monotonic() const;
  /// The CPU's next timer by that clock; empty where it has none.
  std::optional<std::uint64_t> next_timer(std::uint32_t cpu) const;
  /// Seconds since 1970 when the guest's clock was moved on last (timekeeper.xtime_sec); as wrong
  /// as the guest has it.
  std::optional<std::uint64_t> wall_seconds() const;
  /// now() - then, for times of the run queues' clocks; empty for 0 and for what lies ahead.
  std::optional<std::uint64_t> since(std::optional<std::uint64_t> then) const;
  /// How long ago jiffies had this value. Empty where the frequency of ticks cannot be told.
  std::optional<std::uint64_t> since_jiffies(std::uint64_t then) const;
  /// In ticks a second; empty when no usual one fits.
  std::optional<unsigned> tick_frequency() const { return hz_; }

 private:
  struct Cpu {
    std::optional<GuestVirt> queue, timers;
  };

  const KernelView& view_;
  std::optional<Field> clock_, next_timer_;
  std::vector<Cpu> cpus_;
  std::optional<GuestVirt> next_tick_at_, jiffies_at_, timekeeper_;
  std::optional<Field> wall_seconds_;
  std::vector<std::optional<std::uint64_t>> next_timers_;  // by CPU
  std::optional<std::uint64_t> next_tick_;
  std::optional<std::uint64_t> now_, jiffies_;
  std::optional<unsigned> hz_;
};

/// Which of the usual frequencies lets `jiffies` have begun 300 s below zero at boot, `uptime` ago.
std::optional<unsigned> guess_tick_frequency(std::uint64_t jiffies, std::uint64_t uptime);

}  // namespace ringside::guest_linux
