// A table of starts whose end has not come yet, by key, with what was known at the start:
// of waits for a lock, of calls of a function. Bounded: where too much has begun at a time, the new
// takes the place of something old, whose end then finds nothing. Threads: any; of one key one at a
// time. Fire context: yes, but for the constructor.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

namespace ringside::providers {

struct Start {
  static constexpr std::size_t kWords = 3;
  std::uint64_t time = 0;  // ns
  std::array<std::uint64_t, kWords> words{};
  bool is_spoilt = false;
};

class StartTable {
 public:
  StartTable() : slots_(kSlots) {}
  /// In the place of what has begun with this key before.
  void put(std::uint64_t key, const Start& start);
  /// Unless something has begun with this key.
  void put_first(std::uint64_t key, const Start& start);
  /// Ends and returns what has begun with this key; empty when nothing has.
  std::optional<Start> take(std::uint64_t key);

 private:
  static constexpr std::size_t kSlots = 1 << 13, kWays = 16;
  static constexpr std::uint64_t kFree = 0, kBusy = 1;
  struct Slot {
    std::atomic<std::uint64_t> key = kFree;
    Start start;  // of the thread that holds the slot busy
  };

  static std::size_t first_way(std::uint64_t key);
  Slot* find(std::uint64_t key);
  Slot* claim(std::uint64_t key);

  std::vector<Slot> slots_;
};

}  // namespace ringside::providers
