// The schedule of timers, over a clock that the caller reads. Deadlines keep their phase: a late
// firing does not shift the later ones. A tick that is late by up to kMadeUpFor still fires, so
// that a count of ticks measures time. A tick that is later is skipped and counted, so a stalled
// host does not answer with a burst. A late sample that pauses the machine never fires: it would
// only delay the guest more. Fire context: yes (no allocation after open()).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "providers/profile/profile.h"

namespace ringside::providers {

class TimerSchedule {
 public:
  /// Firings that are later than this are skipped (ns).
  static constexpr std::uint64_t kMadeUpFor = 100'000'000;
  /// So many firings at most in one run(), since guests may wait meanwhile.
  static constexpr unsigned kMostAtOnce = 64;

  /// Whether a sample costs the machine a pause.
  enum class Samples : std::uint8_t { Free, Pause };
  TimerSchedule(std::span<const EnabledTimer> timers, Samples samples);
  /// Takes the place of `former`, by take_over().
  TimerSchedule(std::span<const EnabledTimer> timers, const TimerSchedule& former);

  /// Starts every timer: the first deadline is one interval after `now` (ns, any origin).
  void open(std::uint64_t now);
  /// The same, but only for timers that `former` does not have. `former` is the open schedule from
  /// which this one was made; its timers keep their deadlines.
  void take_over(const TimerSchedule& former, std::uint64_t now);
  /// In their order.
  bool has_just(std::span<const EnabledTimer> timers) const;
  /// The earliest deadline; UINT64_MAX before open() and without timers.
  std::uint64_t next_deadline() const { return next_; }

  /// Calls `fire(timer, late)` for each firing that is due at `now`, earliest deadline first;
  /// timers with the same deadline fire in the order of enabling. `late` is in ns. Returns the
  /// number of skipped firings, without samples that pause the machine.
  template <class Fire>
  std::uint64_t run(std::uint64_t now, Fire&& fire) {
    std::uint64_t skipped = 0;
    for (unsigned n = 0; n < kMostAtOnce && next_ <= now; ++n) {
      Entry& entry = entries_[earliest_];
      fire(entry.timer, now - entry.deadline);
      skipped += advance(entry, now);
      find_next();
    }
    return skipped;
  }

 private:
  struct Entry {
    EnabledTimer timer;
    std::uint64_t deadline = UINT64_MAX;
    std::size_t former = SIZE_MAX;  // its index in the schedule before this one, where it was in it
  };
  std::uint64_t advance(Entry& entry, std::uint64_t now) const;
  void find_next();

  std::vector<Entry> entries_;
  std::uint64_t next_ = UINT64_MAX;
  std::size_t earliest_ = 0;  // whose deadline next_ is
  Samples samples_;
};

}  // namespace ringside::providers
