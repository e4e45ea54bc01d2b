// A table of starts whose end has not come yet, by key, with what was known at the start:
// of waits for a lock, of calls of a function. Bounded: where too much has begun at a time, the new
// takes the place of something old, whose end then finds nothing. Threads: any; of one key one at a
// time. Fire context: yes, but for the constructor.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "providers/dispatch/keyed_slots.h"

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
  static constexpr std::size_t kSlots = 1 << 13;

  KeyedSlots<Start> slots_;
};

}  // namespace ringside::providers
