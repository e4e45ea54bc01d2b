#include "vmm/base/brief_lock.h"

#include "vmm/base/cpu_relax.h"

namespace ringside {

namespace {
constexpr unsigned kSpins = 200;  // some 5 us: a few firings
}  // namespace

void BriefLock::lock_slowly() {
  for (unsigned n = 0; n < kSpins; ++n) {
    if (state_.load(std::memory_order_relaxed) == kFree && try_lock()) return;
    cpu_relax();
  }
  // Whoever has slept takes it as waited for: others may sleep still.
  while (state_.exchange(kWaitedFor, std::memory_order_acquire) != kFree) state_.wait(kWaitedFor);
}

}  // namespace ringside
