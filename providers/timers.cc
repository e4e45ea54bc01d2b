#include "providers/timers.h"

#include <algorithm>

namespace ringside::providers {
namespace {

/// Deadlines of absurdly long intervals stay at the end of time instead of wrapping.
std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b) {
  return b <= UINT64_MAX - a ? a + b : UINT64_MAX;
}

}  // namespace

TimerSchedule::TimerSchedule(std::span<const EnabledTimer> timers) {
  for (const EnabledTimer& timer : timers) entries_.push_back({timer, UINT64_MAX});
}

void TimerSchedule::open(std::uint64_t now) {
  for (Entry& entry : entries_) entry.deadline = saturating_sum(now, entry.timer.interval);
  find_next();
}

void TimerSchedule::advance(Entry& entry, std::uint64_t now) {
  const std::uint64_t missed = (now - entry.deadline) / entry.timer.interval;
  entry.deadline = saturating_sum(entry.deadline, (missed + 1) * entry.timer.interval);
}

void TimerSchedule::find_next() {
  next_ = UINT64_MAX;
  for (const Entry& entry : entries_) next_ = std::min(next_, entry.deadline);
}

}  // namespace ringside::providers
