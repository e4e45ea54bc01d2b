// A table of values by key, of fixed size. When it is full, a new value replaces the one that was
// there longest. A slot belongs to one thread at a time. Used for things that begin in one firing
// and end in another one.
// Threads: any; of one key one at a time. Fire context: yes, but for the constructor.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ringside::providers {

template <class Value>
class KeyedSlots {
 public:
  static constexpr std::size_t kWays = 16;
  struct Slot {
    Value value{};  // of the thread that holds the slot

   private:
    friend KeyedSlots;
    std::atomic<std::uint64_t> key_ = kFree;
    std::atomic<std::uint64_t> since_ = 0;
  };
  struct Claim {
    Slot* slot = nullptr;    // null: others hold all that the key may have
    bool displaced = false;  // it was another key's
  };

  /// A power of two, and a multiple of kWays.
  explicit KeyedSlots(std::size_t slots) : slots_(slots) {}

  /// The slot of the key, held for this thread; null: the key has none.
  Slot* find(std::uint64_t key) {
    for (std::size_t way = 0, first = first_way(key); is_key(key) && way < kWays; ++way) {
      if (hold(slots_[first + way], key)) return &slots_[first + way];
    }
    return nullptr;
  }

  /// A slot for a key that has none, held for this thread. It still has the value of an earlier
  /// key.
  Claim claim(std::uint64_t key) {
    if (!is_key(key)) return {};
    Slot* const first = &slots_[first_way(key)];
    for (std::size_t way = 0; way < kWays; ++way) {
      if (hold(first[way], kFree)) return {&first[way], false};
    }
    for (std::size_t tries = 0; tries < kWays; ++tries) {
      Slot& oldest = oldest_of(first);
      const std::uint64_t seen = oldest.key_.load(std::memory_order_relaxed);
      if (seen != kBusy && hold(oldest, seen)) return {&oldest, true};
    }
    return {};
  }

  /// Releases the hold: from now on the slot belongs to the key.
  void keep(Slot& slot, std::uint64_t key) {
    slot.since_.store(clock_.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
    slot.key_.store(key, std::memory_order_release);
  }
  /// Releases the hold: the slot is free.
  void free(Slot& slot) { slot.key_.store(kFree, std::memory_order_release); }

 private:
  static constexpr std::uint64_t kFree = 0, kBusy = 1;

  static bool is_key(std::uint64_t key) { return key != kFree && key != kBusy; }
  static bool hold(Slot& slot, std::uint64_t seen) {
    return slot.key_.compare_exchange_strong(seen, kBusy, std::memory_order_acquire);
  }
  std::size_t first_way(std::uint64_t key) const {
    // Without a secret: keys that collide displace each other, which is the guest's own loss.
    constexpr std::uint64_t kSpread = 0x9e37'79b9'7f4a'7c15;
    constexpr unsigned kUpperBits = 40;
    return ((key * kSpread) >> kUpperBits) % (slots_.size() / kWays) * kWays;
  }
  static Slot& oldest_of(Slot* first) {
    Slot* oldest = first;
    for (std::size_t way = 1; way < kWays; ++way) {
      const auto since = first[way].since_.load(std::memory_order_relaxed);
      if (since < oldest->since_.load(std::memory_order_relaxed)) oldest = &first[way];
    }
    return *oldest;
  }

  std::vector<Slot> slots_;
  std::atomic<std::uint64_t> clock_ = 0;
};

}  // namespace ringside::providers
