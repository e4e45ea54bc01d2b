// The starts whose end has not come yet (waits for a lock, calls of a function), by key, with the
// values at the start. The table is bounded: if it is full, a new start replaces an old one, whose
// end then finds nothing. Threads: any; of one key one at a time. Fire context: yes, but for the
// constructor.
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
  /// Replaces an earlier start with this key.
  void put(std::uint64_t key, const Start& start);
  /// Does nothing if there is a start with this key.
  void put_first(std::uint64_t key, const Start& start);
  /// Removes and returns the start with this key; empty if there is none.
  std::optional<Start> take(std::uint64_t key);

 private:
  static constexpr std::size_t kSlots = 1 << 13;

  KeyedSlots<Start> slots_;
};

}  // namespace ringside::providers
