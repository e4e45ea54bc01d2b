// Tells how long the fire thread waits after a pass over the mailboxes that found nothing. A
// trapped vCPU stands still until the next pass. But on a host with few cores, a fire thread that
// spins takes the CPU that the guest needs. So the thread spins briefly after a trap, and then
// sleeps, each time half as long again as the last time. So a trap waits for at most a third of the
// silence before it, and never longer than the longest sleep. The longest sleep keeps an idle armed
// machine cheap. Pure. Fire context: yes.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ringside::providers {

class IdleWait {
 public:
  static constexpr std::uint32_t kSpins = 2000;        // passes, about 100 us
  static constexpr std::uint64_t kFirstPause = 5'000;  // ns
  static constexpr std::uint64_t kLongestPause = 1'000'000;

  explicit IdleWait(std::uint32_t spins = kSpins) : spins_(spins) {}

  /// A trap was served: spin again.
  void busy() {
    idle_ = 0;
    pause_ = kFirstPause;
  }
  /// A pass found nothing: ns to sleep, 0 to look again at once. Never past `until_deadline`.
  std::uint64_t idle(std::uint64_t until_deadline) {
    if (idle_ < spins_) {
      ++idle_;
      return 0;
    }
    const std::uint64_t pause = pause_;
    pause_ = std::min(pause_ + pause_ / 2, kLongestPause);
    return std::min(pause, until_deadline);
  }

 private:
  std::uint32_t spins_;
  std::uint32_t idle_ = 0;
  std::uint64_t pause_ = kFirstPause;
};

}  // namespace ringside::providers
