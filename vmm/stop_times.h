// When a machine's guest stood still: in our pauses, and while its owner had stopped it. For the
// guest clock in ticks of the host's TSC, because the guest's TSC may stop meanwhile (QEMU's TCG)
// or go on (KVM). For the user how often and how long we paused it. Threads: every function from
// any. Fire context: version() and ticks() yes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace ringside::vmm {

struct Pauses {
  std::uint64_t count = 0;
  std::chrono::nanoseconds total{}, longest{};

  /// "3 times, for 2.5 ms in all, for 1.2 ms at the longest".
  std::string describe() const;
};

class StopTimes {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// It stands, or is about to. Stops nest: our pauses, and those of its owner.
  void begin(std::uint64_t tsc);
  /// The guest runs again, since `tsc` or earlier. Call it as often as begin().
  void end(std::uint64_t tsc);
  /// The same for a pause of ours, which is counted, too. It lasts from the request until the vCPUs
  /// were let go, so it is never shorter than for the guest. Pauses that overlap count as one.
  void begin_pause(std::uint64_t tsc, Time asked);
  /// Ends a pause that has begun, or that failed.
  void end_pause(std::uint64_t tsc, Time let_go);

  /// Odd while it stands; another one after each change.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }
  /// For how long it has stood still until `tsc`, all stops together. Never too little.
  std::uint64_t ticks(std::uint64_t tsc) const {
    const std::uint64_t since = since_.load(std::memory_order_acquire);
    const std::uint64_t ended = ended_.load(std::memory_order_acquire);
    return ended + (since != 0 && tsc > since ? tsc - since : 0);
  }
  /// Our pauses that have ended.
  Pauses pauses() const;

 private:
  mutable std::mutex mutex_;
  unsigned depth_ = 0;
  std::atomic<std::uint64_t> version_{0}, since_{0}, ended_{0};  // since_ 0: it runs
  unsigned open_pauses_ = 0;
  Time paused_since_;
  Pauses pauses_;
};

}  // namespace ringside::vmm
