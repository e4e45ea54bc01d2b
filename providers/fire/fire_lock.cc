#include "providers/fire/fire_lock.h"

namespace ringside::providers {
namespace {

constexpr unsigned kSpins = 200;    // some 5 us: a few firings
constexpr unsigned kGiveWay = 500;  // the most that the fire thread stands back

}  // namespace

void FireLock::take(std::uint32_t in_the_way) {
  waiting_.fetch_add(1);
  for (unsigned n = 0;; ++n) {
    std::uint32_t seen = state_.load();
    if ((seen & in_the_way) == 0) {
      if (state_.compare_exchange_strong(seen, kHeld, std::memory_order_acquire)) break;
    } else if (n < kSpins) {
      __builtin_ia32_pause();
    } else {
      state_.wait(seen);
    }
  }
  waiting_.fetch_sub(1);
}

void FireLock::lock_slowly() {
  take(kHeld | kReserved);
}

void FireLock::reserve() {
  state_.fetch_or(kReserved);
  take(kHeld);
}

void FireLock::give_way() const {
  for (unsigned n = 0; n < kGiveWay && waiting_.load(std::memory_order_relaxed) != 0; ++n) {
    __builtin_ia32_pause();
  }
}

}  // namespace ringside::providers
