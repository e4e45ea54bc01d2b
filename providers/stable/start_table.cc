#include "providers/stable/start_table.h"

namespace ringside::providers {

void StartTable::put(std::uint64_t key, const Start& start) {
  auto* slot = slots_.find(key);
  if (slot == nullptr) {
    const auto claimed = slots_.claim(key);
    slot = claimed.slot;
    if (claimed.displaced) displaced_.fetch_add(1, std::memory_order_relaxed);
  }
  if (slot == nullptr) return;
  slot->value = start;
  slots_.keep(*slot, key);
}

void StartTable::put_first(std::uint64_t key, const Start& start, unsigned adding) {
  if (auto* const slot = slots_.find(key)) {
    for (std::size_t n = 0; n < start.words.size(); ++n) {
      if ((adding >> n & 1) != 0) slot->value.words[n] |= start.words[n];
    }
    slots_.keep(*slot, key);
    return;
  }
  put(key, start);
}

std::optional<Start> StartTable::take(std::uint64_t key) {
  auto* const slot = slots_.find(key);
  if (slot == nullptr) return std::nullopt;
  const Start start = slot->value;
  slots_.free(*slot);
  return start;
}

}  // namespace ringside::providers
