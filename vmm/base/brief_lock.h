// A lock that is held for one firing at most. A thread that waits spins for the time of a few
// firings, then sleeps. If nobody waits, taking and releasing it cost one atomic exchange each. It
// is not first come, first served: on a host without spare cores, the next waiter may have no CPU,
// and all others would wait for its time slice.
// Fire context: yes (the only lock that may be taken there; ARCHITECTURE.md has the exceptions).
#pragma once

#include <atomic>
#include <cstdint>

#include "vmm/base/host_cpu.h"

namespace ringside {

class BriefLock {
 public:
  BriefLock() = default;
  BriefLock(const BriefLock&) = delete;
  BriefLock& operator=(const BriefLock&) = delete;

  void lock() {
    if (!try_lock()) lock_slowly();
  }
  bool try_lock() {
    std::uint32_t free = kFree;
    return state_.compare_exchange_strong(free, kHeld, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }
  void unlock() {
    if (state_.exchange(kFree, std::memory_order_release) == kWaitedFor) state_.notify_one();
  }

 private:
  static constexpr std::uint32_t kFree = 0, kHeld = 1;
  static constexpr std::uint32_t kWaitedFor = 2;  // held, and somebody may sleep
  static constexpr unsigned kSpins = 200;         // some 5 us: a few firings

  [[gnu::noinline]] void lock_slowly() {
    for (unsigned n = 0; n < kSpins; ++n) {
      if (state_.load(std::memory_order_relaxed) == kFree && try_lock()) return;
      cpu_relax();
    }
    // Whoever has slept takes it as waited for: others may sleep still.
    while (state_.exchange(kWaitedFor, std::memory_order_acquire) != kFree) state_.wait(kWaitedFor);
  }

  std::atomic<std::uint32_t> state_ = kFree;
};

}  // namespace ringside
