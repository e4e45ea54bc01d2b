// A value that many threads read while one replaces it: readers see it whole, as one epoch or the
// next, and the former one is freed when the last of its readers has gone.
// A reader says in a slot of its own which epoch it looks at, and then looks whether that still is
// the current one (hazard pointers: M. Michael, IEEE TPDS 15(6), 2004). So the writer, once it has
// put the next one in its place, only waits until no slot names the former one.
// Used by the dispatcher. Does not: order writers among each other; one thread at a time publishes.
// Fire context: pin() yes; the others no.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>
#include <utility>

namespace ringside::providers {

template <class T>
class Epochs {
  struct alignas(64) Slot {  // a cache line each, so that readers do not fight
    std::atomic<const T*> seen = nullptr;
  };

 public:
  /// Keeps one epoch alive. Short-lived: the writer waits for it.
  class Pin {
   public:
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;
    ~Pin() { slot_.seen.store(nullptr, std::memory_order_release); }
    const T& operator*() const { return *epoch_; }
    const T* operator->() const { return epoch_; }

   private:
    friend class Epochs;
    Pin(Slot& slot, const T* epoch) : slot_(slot), epoch_(epoch) {}
    Slot& slot_;
    const T* const epoch_;
  };

  explicit Epochs(std::unique_ptr<const T> first) : current_(first.release()) {}
  /// Nobody reads any more.
  ~Epochs() { delete current_.load(std::memory_order_relaxed); }
  Epochs(const Epochs&) = delete;
  Epochs& operator=(const Epochs&) = delete;

  /// Any thread. Waits for nobody while there are slots; one reader more waits for another to end.
  Pin pin() const {
    const T* epoch = current_.load(std::memory_order_acquire);
    Slot& slot = claim(epoch);
    // Sequentially consistent, as publish() is: either the writer sees the slot, or we see the
    // writer's. A turn of this loop is an epoch that was published meanwhile.
    for (;;) {
      const T* const now = current_.load(std::memory_order_seq_cst);
      if (now == epoch) return Pin(slot, epoch);
      epoch = now;
      slot.seen.store(epoch, std::memory_order_seq_cst);
    }
  }

  /// For the writer, who alone changes it.
  const T& current() const { return *current_.load(std::memory_order_relaxed); }

  /// From now on pin() gives `next`. When it returns nobody looks at the former epoch any more.
  /// Not while this thread holds a Pin.
  void publish(std::unique_ptr<const T> next) {
    const std::unique_ptr<const T> former(
        current_.exchange(next.release(), std::memory_order_seq_cst));
    for (const Slot& slot : slots_) {
      for (unsigned n = 0; slot.seen.load(std::memory_order_seq_cst) == former.get(); ++n) {
        if (n >= kSpins) std::this_thread::sleep_for(kNap);
      }
    }
  }

 private:
  static constexpr std::size_t kSlots = 64;  // more readers at once than there are vCPUs, as a rule
  static constexpr unsigned kSpins = 1000;
  static constexpr std::chrono::microseconds kNap{50};

  /// Threads begin at different slots and so find theirs free.
  static std::size_t first_slot() {
    static std::atomic<std::size_t> threads = 0;
    thread_local const std::size_t mine = threads.fetch_add(1, std::memory_order_relaxed);
    return mine % kSlots;
  }
  Slot& claim(const T* epoch) const {
    for (std::size_t at = first_slot();; at = (at + 1) % kSlots) {
      const T* free = nullptr;
      if (slots_[at].seen.compare_exchange_strong(free, epoch, std::memory_order_seq_cst)) {
        return slots_[at];
      }
    }
  }

  std::atomic<const T*> current_;
  mutable std::array<Slot, kSlots> slots_{};
};

}  // namespace ringside::providers
