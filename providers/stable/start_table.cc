#include "providers/stable/start_table.h"

namespace ringside::providers {

std::size_t StartTable::first_way(std::uint64_t key) {
  // Without a key: keys that collide displace each other, which is the guest's own loss.
  constexpr std::uint64_t kSpread = 0x9e37'79b9'7f4a'7c15;
  constexpr unsigned kUpperBits = 40;
  return ((key * kSpread) >> kUpperBits) % (kSlots / kWays) * kWays;
}

/// The key's slot, busy; null: it has none.
StartTable::Slot* StartTable::find(std::uint64_t key) {
  for (std::size_t way = 0, first = first_way(key); way < kWays; ++way) {
    Slot& slot = slots_[first + way];
    std::uint64_t seen = key;
    if (slot.key.compare_exchange_strong(seen, kBusy, std::memory_order_acquire)) return &slot;
  }
  return nullptr;
}

/// A slot for a key that has none, busy; null: others have all of them busy.
StartTable::Slot* StartTable::claim(std::uint64_t key) {
  const std::size_t first = first_way(key);
  for (std::size_t way = 0; way < kWays; ++way) {
    Slot& slot = slots_[first + way];
    std::uint64_t seen = kFree;
    if (slot.key.compare_exchange_strong(seen, kBusy, std::memory_order_acquire)) return &slot;
  }
  for (std::size_t way = 0; way < kWays; ++way) {
    Slot& slot = slots_[first + way];
    std::uint64_t seen = slot.key.load(std::memory_order_relaxed);
    if (seen != kBusy && slot.key.compare_exchange_strong(seen, kBusy, std::memory_order_acquire)) {
      return &slot;
    }
  }
  return nullptr;
}

void StartTable::put(std::uint64_t key, const Start& start) {
  if (key == kFree || key == kBusy) return;
  Slot* slot = find(key);
  if (slot == nullptr) slot = claim(key);
  if (slot == nullptr) return;
  slot->start = start;
  slot->key.store(key, std::memory_order_release);
}

void StartTable::put_first(std::uint64_t key, const Start& start) {
  if (key == kFree || key == kBusy) return;
  if (Slot* const slot = find(key)) {
    slot->start.is_spoilt |= start.is_spoilt;
    slot->key.store(key, std::memory_order_release);
    return;
  }
  put(key, start);
}

std::optional<Start> StartTable::take(std::uint64_t key) {
  Slot* const slot = key == kFree || key == kBusy ? nullptr : find(key);
  if (slot == nullptr) return std::nullopt;
  const Start start = slot->start;
  slot->key.store(kFree, std::memory_order_release);
  return start;
}

}  // namespace ringside::providers
