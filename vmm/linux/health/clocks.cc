#include "vmm/linux/health/clocks.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace ringside::guest_linux {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

/// Jiffies since boot; they begin at (u32)(-300 * HZ), on 64 bits, too.
std::uint64_t ticks_since_boot(std::uint64_t jiffies, unsigned hz) {
  return jiffies - static_cast<std::uint32_t>(-300 * static_cast<std::int32_t>(hz));
}

}  // namespace

std::optional<unsigned> guess_tick_frequency(std::uint64_t jiffies, std::uint64_t uptime) {
  constexpr std::array<unsigned, 6> kUsual{100, 128, 250, 300, 512, 1000};
  std::optional<unsigned> best;
  const double wanted = static_cast<double>(uptime) / kSecond;
  // Ticks begin late, and some are lost: the right one may be wrong by some seconds.
  double least = std::max(0.1 * wanted, 10.0);
  bool is_alone = true;
  for (const unsigned hz : kUsual) {
    const double seconds = static_cast<double>(ticks_since_boot(jiffies, hz)) / hz;
    const double error = std::fabs(seconds - wanted);
    // All are right when jiffies pass 0, 300 s after boot.
    if (best && std::fabs(error - least) < 3) is_alone = false;
    if (error >= least) continue;
    is_alone = !best || least - error >= 3;
    least = error;
    best = hz;
  }
  return is_alone ? best : std::nullopt;
}

void Clocks::read() {
  const KernelView& view = view_;
  const auto clock = view.field("rq", "clock");
  const auto next_timer = view.field("hrtimer_cpu_base", "expires_next");
  next_timers_.clear();
  now_.reset();
  for (std::uint32_t cpu = 0; cpu < view.cpu_count(); ++cpu) {
    const auto queue = view.percpu("runqueues", cpu);
    const auto at = queue ? view.value(*queue, clock) : std::nullopt;
    if (at && *at >> 63 == 0 && *at > now_.value_or(0)) now_ = at;  // more is 292 years
    const auto timers = view.percpu("hrtimer_bases", cpu);
    next_timers_.push_back(timers ? view.value(*timers, next_timer) : std::nullopt);
  }
  next_tick_ = view.variable<std::uint64_t>("tick_next_period");
  jiffies_ = view.variable<std::uint64_t>("jiffies_64");
  if (!jiffies_) jiffies_ = view.variable<std::uint64_t>("jiffies");
  if (now_ && jiffies_) hz_ = guess_tick_frequency(*jiffies_, *now_);
}

std::optional<std::uint64_t> Clocks::timer_overdue(std::uint32_t cpu) const {
  if (cpu >= next_timers_.size() || !next_timers_[cpu] || !next_tick_) return std::nullopt;
  if (*next_timers_[cpu] == 0 || *next_timers_[cpu] >= *next_tick_) return std::nullopt;
  return *next_tick_ - *next_timers_[cpu];
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
