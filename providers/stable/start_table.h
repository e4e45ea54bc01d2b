// The starts whose end has not come yet (waits for a lock, calls of a function), by key, with the
// values at the start. The table is bounded: if it is full, a new start replaces an old one, whose
// end then finds nothing. The counter says how many; some of them may never have come to an end.
// Threads: any; of one key one at a time. Fire context: yes, but for the
// constructor.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "dif/program/probe_definition.h"
#include "providers/dispatch/keyed_slots.h"

namespace ringside::providers {

struct Start {
  std::array<std::uint64_t, dif::kMostRemembered> words{};
  const void* of = nullptr;  // which beginning it was, of those that share a table
};

class StartTable {
 public:
  /// `displaced`, which others may share, must outlive it.
  explicit StartTable(std::atomic<std::uint64_t>& displaced)
      : displaced_(displaced), slots_(kSlots) {}
  /// Replaces an earlier start with this key.
  void put(std::uint64_t key, const Start& start);
  /// If there is a start with this key, it stays; the words whose bits `adding` has get the bits of
  /// this one.
  void put_first(std::uint64_t key, const Start& start, unsigned adding);
  /// Removes and returns the start with this key; empty if there is none.
  std::optional<Start> take(std::uint64_t key);

 private:
  static constexpr std::size_t kSlots = 1 << 13;

  std::atomic<std::uint64_t>& displaced_;
  KeyedSlots<Start> slots_;
};

}  // namespace ringside::providers
