#include "vmm/linux/health/clocks.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "vmm/base/numbers.h"
#include "vmm/linux/health/report.h"

namespace ringside::guest_linux {
namespace {

/// Jiffies since boot; they begin at (u32)(-300 * HZ), on 64 bits, too.
std::uint64_t ticks_since_boot(std::uint64_t jiffies, unsigned hz) {
  return jiffies - static_cast<std::uint32_t>(-300 * static_cast<std::int32_t>(hz));
}

/// Behind its sequence count in tk_core (kernel/time/timekeeping.c), which is a struct tk_data
/// since 6.13.
std::optional<GuestVirt> find_timekeeper(const KernelView& view) {
  const auto core = view.symbol("tk_core");
  if (!core) return std::nullopt;
  if (const auto inside = view.field("tk_data", "timekeeper")) {
    return core->wrapping_add(inside->offset);
  }
  const std::uint64_t before = view.size_of("seqcount_raw_spinlock");
  return before != 0 ? std::optional(core->wrapping_add(round_up(before, 8U))) : std::nullopt;
}

}  // namespace

std::optional<unsigned> guess_tick_frequency(std::uint64_t jiffies, std::uint64_t uptime) {
  struct Guess {
    double error;  // seconds
    unsigned hz;
  };
  std::array<Guess, 6> guesses{{{0, 100}, {0, 128}, {0, 250}, {0, 300}, {0, 512}, {0, 1000}}};
  const double wanted = static_cast<double>(uptime) / kSecond;
  for (Guess& guess : guesses) {
    const double ticks = static_cast<double>(ticks_since_boot(jiffies, guess.hz));
    guess.error = std::fabs(ticks / guess.hz - wanted);
  }
  std::ranges::sort(guesses, {}, &Guess::error);
  // Ticks begin late, and some are lost: the right one may be wrong by some seconds. All are right
  // when jiffies pass 0, 300 s after boot.
  const double most = std::max(0.1 * wanted, 10.0);
  if (guesses[0].error >= most || guesses[1].error - guesses[0].error < 3) return std::nullopt;
  return guesses[0].hz;
}

Clocks::Clocks(const KernelView& view)
    : view_(view),
      clock_(view.field("rq", "clock")),
      next_timer_(view.field("hrtimer_cpu_base", "expires_next")),
      next_tick_at_(view.symbol("tick_next_period")),
      jiffies_at_(view.symbol("jiffies_64")),
      timekeeper_(find_timekeeper(view)),
      wall_seconds_(view.field("timekeeper", "xtime_sec")) {
  if (!jiffies_at_) jiffies_at_ = view.symbol("jiffies");
  for (std::uint32_t cpu = 0; cpu < view.cpu_count(); ++cpu) {
    cpus_.push_back({view.percpu("runqueues", cpu), view.percpu("hrtimer_bases", cpu)});
  }
  read();
}

void Clocks::read() {
  next_timers_.clear();
  now_.reset();
  for (const Cpu& cpu : cpus_) {
    const auto at = view_.value(cpu.queue, clock_);
    if (at && *at >> 63 == 0 && *at > now_.value_or(0)) now_ = at;  // more is 292 years
    next_timers_.push_back(view_.value(cpu.timers, next_timer_));
  }
  next_tick_ = view_.load<std::uint64_t>(next_tick_at_);
  jiffies_ = view_.load<std::uint64_t>(jiffies_at_);
  if (now_ && jiffies_) hz_ = guess_tick_frequency(*jiffies_, *now_);
}

std::optional<std::uint64_t> Clocks::timer_overdue(std::uint32_t cpu) const {
  if (cpu >= next_timers_.size() || !next_timers_[cpu] || !next_tick_) return std::nullopt;
  if (*next_timers_[cpu] == 0 || *next_timers_[cpu] >= *next_tick_) return std::nullopt;
  return *next_tick_ - *next_timers_[cpu];
}

std::optional<std::uint64_t> Clocks::monotonic() const {
  constexpr std::uint64_t kSlowestTick = 100;
  const std::uint64_t tick = kSecond / hz_.value_or(kSlowestTick);
  return next_tick_ && *next_tick_ > tick ? std::optional(*next_tick_ - tick) : std::nullopt;
}

std::optional<std::uint64_t> Clocks::next_timer(std::uint32_t cpu) const {
  if (cpu >= next_timers_.size() || !next_timers_[cpu]) return std::nullopt;
  const std::uint64_t next = *next_timers_[cpu];
  return next != 0 && next >> 63 == 0 && next != INT64_MAX ? std::optional(next) : std::nullopt;
}

std::optional<std::uint64_t> Clocks::wall_seconds() const {
  return view_.value(timekeeper_, wall_seconds_);
}

std::optional<std::uint64_t> Clocks::since(std::optional<std::uint64_t> then) const {
  if (!then || *then == 0 || !now_ || *then > *now_) return std::nullopt;
  return *now_ - *then;
}

std::optional<std::uint64_t> Clocks::since_jiffies(std::uint64_t then) const {
  if (!jiffies_ || !hz_ || then > *jiffies_) return std::nullopt;
  // More than the machine is up for was no such time.
  const std::uint64_t ticks = *jiffies_ - then;
  if (ticks > ticks_since_boot(*jiffies_, *hz_)) return std::nullopt;
  return ticks * (kSecond / *hz_);
}

}  // namespace ringside::guest_linux
