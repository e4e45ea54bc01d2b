#include "providers/profile/timers.h"

#include <algorithm>
#include <unordered_map>

namespace ringside::providers {
namespace {

/// Deadlines of absurdly long intervals stay at the end of time instead of wrapping.
std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b) {
  return b <= UINT64_MAX - a ? a + b : UINT64_MAX;
}

}  // namespace

TimerSchedule::TimerSchedule(std::span<const EnabledTimer> timers, Samples samples)
    : samples_(samples) {
  for (const EnabledTimer& timer : timers) entries_.push_back({.timer = timer});
}

/// Of `former` only what never changes is looked at: another thread may run it.
TimerSchedule::TimerSchedule(std::span<const EnabledTimer> timers, const TimerSchedule& former)
    : TimerSchedule(timers, former.samples_) {
  std::unordered_map<std::uint32_t, std::size_t> known;
  for (std::size_t n = 0; n < former.entries_.size(); ++n) {
    known.emplace(former.entries_[n].timer.probe.value, n);
  }
  for (Entry& entry : entries_) {
    const auto found = known.find(entry.timer.probe.value);
    if (found != known.end()) entry.former = found->second;
  }
}

void TimerSchedule::take_over(const TimerSchedule& former, std::uint64_t now) {
  for (Entry& entry : entries_) {
    entry.deadline = entry.former < former.entries_.size()
                         ? former.entries_[entry.former].deadline
                         : saturating_sum(now, entry.timer.interval);
  }
  find_next();
}

bool TimerSchedule::has_just(std::span<const EnabledTimer> timers) const {
  return std::ranges::equal(
      entries_, timers, {}, [](const Entry& entry) { return entry.timer.probe; },
      &EnabledTimer::probe);
}

void TimerSchedule::open(std::uint64_t now) {
  for (Entry& entry : entries_) entry.deadline = saturating_sum(now, entry.timer.interval);
  find_next();
}

/// To the next deadline; how many are skipped, as run() has it.
std::uint64_t TimerSchedule::advance(Entry& entry, std::uint64_t now) const {
  const bool pauses = samples_ == Samples::Pause && entry.timer.kind == TimerKind::Profile;
  if (!pauses && now - entry.deadline <= kMadeUpFor) {
    entry.deadline = saturating_sum(entry.deadline, entry.timer.interval);
    return 0;
  }
  const std::uint64_t missed = (now - entry.deadline) / entry.timer.interval;
  entry.deadline = saturating_sum(entry.deadline, (missed + 1) * entry.timer.interval);
  return pauses ? 0 : missed;
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
