// A lock that is held for the time of one firing at most: it spins for as long as a few firings
// take, then sleeps. One swap to take it and one to give it back while nobody else wants it. Not
// first come, first served: on a host without spare cores a waiter's turn would be everybody's time
// slice.
// Fire context: yes (the only lock that may be taken there; ARCHITECTURE.md has the exceptions).
#pragma once

#include <atomic>
#include <cstdint>

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

  void lock_slowly();

  std::atomic<std::uint32_t> state_ = kFree;
};

}  // namespace ringside
