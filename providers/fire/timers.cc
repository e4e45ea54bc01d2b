#include "providers/fire/timers.h"

#include <algorithm>

namespace ringside::providers {
namespace {

/// Deadlines of absurdly long intervals stay at the end of time instead of wrapping.
std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b) {
  return b <= UINT64_MAX - a ? a + b : UINT64_MAX;
}

}  // namespace

TimerSchedule::TimerSchedule(std::span<const EnabledTimer> timers, bool samples_pause)
    : samples_pause_(samples_pause) {
  for (const EnabledTimer& timer : timers) entries_.push_back({timer, UINT64_MAX});
}

bool TimerSchedule::has_samples() const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const Entry& entry) { return entry.timer.kind == TimerKind::Profile; });
}

void TimerSchedule::open(std::uint64_t now) {
  for (Entry& entry : entries_) entry.deadline = saturating_sum(now, entry.timer.interval);
  find_next();
}

void TimerSchedule::advance(Entry& entry, std::uint64_t now) const {
  const bool pauses = samples_pause_ && entry.timer.kind == TimerKind::Profile;
  if (!pauses && now - entry.deadline <= kMadeUpFor) {
    entry.deadline = saturating_sum(entry.deadline, entry.timer.interval);
    return;
  }
  const std::uint64_t missed = (now - entry.deadline) / entry.timer.interval;
  entry.deadline = saturating_sum(entry.deadline, (missed + 1) * entry.timer.interval);
}

void TimerSchedule::find_next() {
  next_ = UINT64_MAX;
  for (std::size_t n = 0; n < entries_.size(); ++n) {
    if (entries_[n].deadline >= next_) continue;
    next_ = entries_[n].deadline;
    earliest_ = n;
  }
}

}  // namespace ringside::providers
