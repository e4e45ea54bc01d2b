// Which timers are due: a pure schedule over a clock that the caller reads. Deadlines keep their
// phase: a late firing does not shift the later ones, and intervals that were missed entirely are
// skipped, so a stalled host does not answer with a burst.
// Fire context: yes (no allocation after open()).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "providers/profile.h"

namespace ringside::providers {

class TimerSchedule {
 public:
  explicit TimerSchedule(std::span<const EnabledTimer> timers);

  /// Starts every timer: the first deadline is one interval after `now` (ns, any origin).
  void open(std::uint64_t now);
  /// The earliest deadline; UINT64_MAX before open() and without timers.
  std::uint64_t next_deadline() const { return next_; }

  /// Calls `fire(timer)` for each timer that is due at `now`, in the order of enabling, and moves
  /// its deadline past `now`.
  template <class Fire>
  void run(std::uint64_t now, Fire&& fire) {
    if (now < next_) return;
    for (Entry& entry : entries_) {
      if (now < entry.deadline) continue;
      fire(entry.timer);
      advance(entry, now);
    }
    find_next();
  }

 private:
  struct Entry {
    EnabledTimer timer;
    std::uint64_t deadline = UINT64_MAX;
  };
  static void advance(Entry& entry, std::uint64_t now);
  void find_next();

  std::vector<Entry> entries_;
  std::uint64_t next_ = UINT64_MAX;
};

}  // namespace ringside::providers
