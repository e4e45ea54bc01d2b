// The fire lock: one firing at a time. Where vCPUs run on threads of ours, traps, breakpoints and
// events fire there, several at once, beside the fire thread; the engine, its buffers, the guest
// contexts, the clock and the line caches are one of each and belong to whoever holds this lock.
// One lock and not one engine for each vCPU, because D's global variables, speculations and ERROR
// are shared anyway, and a firing takes a microsecond.
// Costs some ns while nobody else wants it. It is not first come, first served: whoever runs takes
// it, since on a host without spare cores a waiter's turn would be everybody's time slice. Nobody
// starves all the same: the fire thread, which keeps the heart beating, reserves the next turn, and
// lets waiting vCPUs go first before it comes back for another one.
//
// Order: the outermost lock. Its holder may pause the machine (a sample does), since a vCPU's
// thread that waits here is outside the guest and thus counts as paused. A vCPU's thread must not
// pause the machine, with or without it; nobody waits here while holding a lock that pausing needs.
// Waiting here is before fire context begins. Threads: any. Fire context: unlock() only.
#pragma once

#include <atomic>
#include <cstdint>

namespace ringside::providers {

class FireLock {
 public:
  FireLock() = default;
  FireLock(const FireLock&) = delete;
  FireLock& operator=(const FireLock&) = delete;

  /// A vCPU's thread. With std::lock_guard.
  void lock() {
    std::uint32_t free = 0;
    if (!state_.compare_exchange_strong(free, kHeld, std::memory_order_acquire)) lock_slowly();
  }
  /// The fire thread; one thread only.
  void lock_next() {
    if (waiting_.load(std::memory_order_relaxed) != 0) give_way();
    std::uint32_t free = 0;
    if (!state_.compare_exchange_strong(free, kHeld, std::memory_order_acquire)) reserve();
  }
  void unlock() {
    // Sequentially consistent with a waiter's count and its look at the state: it sees the lock
    // free, or is seen to wait.
    state_.fetch_and(~kHeld);
    if (waiting_.load() != 0) state_.notify_all();
  }

 private:
  static constexpr std::uint32_t kHeld = 1;
  static constexpr std::uint32_t kReserved = 2;  // the fire thread waits: nobody else may take it

  /// Waits until none of these bits is set, and holds the lock.
  void take(std::uint32_t in_the_way);
  void lock_slowly();
  void reserve();
  void give_way() const;

  std::atomic<std::uint32_t> state_ = 0;
  std::atomic<std::uint32_t> waiting_ = 0;  // threads that spin or sleep
};

/// The fire thread's turn.
class FireTurn {
 public:
  explicit FireTurn(FireLock& lock) : lock_(lock) { lock_.lock_next(); }
  ~FireTurn() { lock_.unlock(); }
  FireTurn(const FireTurn&) = delete;
  FireTurn& operator=(const FireTurn&) = delete;

 private:
  FireLock& lock_;
};

}  // namespace ringside::providers
