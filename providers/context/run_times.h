// vtimestamp: the time that each thread has run. The scheduler's account (thread_clock.h) and
// `timestamp` use different clocks: the time line of `timestamp` is corrected by up to 1/500
// (guest_clock.h), and the account gets more exact with each firing. So from one firing of a thread
// to the next, vtimestamp grows by at most as much as `timestamp`. Elapsed time less time on CPU is
// then never below 0. The time that probes and actions took is left out, as in DTrace. All vCPUs
// share one RunTimes, because threads move.
// Threads: any. Fire context: yes, but for the constructor.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "vmm/base/address.h"
#include "vmm/base/brief_lock.h"

namespace ringside::providers {

class RunTimes {
 public:
  struct Thread {
    GuestVirt task;  // task_struct
    std::int32_t id = 0;

    bool operator==(const Thread&) const = default;
  };

  RunTimes() : seen_(kSeen) {}

  /// Nanoseconds for a thread whose account says `ran` at a firing's `time` (ns; where that is not
  /// known, the account alone counts). Never less for a thread than before; only differences mean
  /// something.
  std::uint64_t show(const Thread& thread, std::uint64_t ran, std::optional<std::uint64_t> time);
  /// Whether show() has ever been asked: a program that wants none of it pays for nothing.
  bool is_asked() const { return is_asked_.load(std::memory_order_relaxed); }
  /// The thread has stood still for so long (ns) for a firing, which is in its account.
  void waited(const Thread& thread, std::uint64_t nanoseconds);

 private:
  /// If two threads share an entry, each replaces the other, and starts again from its account.
  static constexpr std::size_t kSeen = 1024;

  struct Seen {
    BriefLock lock;  // for all that follows
    Thread thread;
    std::uint64_t ran = 0;     // the account
    std::uint64_t shown = 0;   // what was made of it
    std::uint64_t waited = 0;  // for firings, since that
    struct Timed {
      std::uint64_t time = 0, shown = 0;
    };
    std::optional<Timed> timed;  // the last firing whose time was known
  };

  Seen& place_of(const Thread& thread);

  std::atomic<bool> is_asked_ = false;
  std::vector<Seen> seen_;  // by a hash of the task's address
};

}  // namespace ringside::providers
