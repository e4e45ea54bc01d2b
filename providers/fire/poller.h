// A thread that answers the traps of its share of the mailboxes. The fire thread has the first
// share. More pollers serve more vCPUs at once, but each takes a host CPU while it spins. Used by
// the fire loop. Fire context: the thread's body.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "vmm/shim/mailboxes.h"

namespace ringside::providers {

/// A shim's mailboxes, and who handles the traps in them. Both must outlive the ShimTraps.
struct ShimTraps {
  vmm::Mailboxes& shim;
  const vmm::TrapHandlers& handlers;
};

/// Tells how long a thread that polls waits after a pass that found nothing. A trapped vCPU stands
/// still until the next pass. But on a host with few cores, a thread that spins takes the CPU that
/// the guest needs. So it spins briefly after a trap, and then sleeps, each time half as long again
/// as the last time: a trap waits for at most a third of the silence before it, and never longer
/// than the longest sleep. That keeps an idle armed machine cheap. Where nearly all traps are
/// recorded, it need not spin, and may sleep longer. Pure. Fire context: yes.
class IdleWait {
 public:
  static constexpr std::uint32_t kSpins = 2000;        // passes, about 100 us
  static constexpr std::uint64_t kFirstPause = 5'000;  // ns
  static constexpr std::uint64_t kLongestPause = 1'000'000;
  static constexpr std::uint64_t kLongestUnwatched = 20'000'000;  // where hardly a trap waits

  explicit IdleWait(std::uint32_t spins = kSpins, std::uint64_t longest_pause = kLongestPause)
      : spins_(spins), longest_pause_(longest_pause) {}

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
    pause_ = std::min(pause_ + pause_ / 2, longest_pause_);
    return std::min(pause, until_deadline);
  }

 private:
  const std::uint32_t spins_;
  const std::uint64_t longest_pause_;
  std::uint32_t idle_ = 0;
  std::uint64_t pause_ = kFirstPause;
};

/// Tells how long the rings are left alone after a look at them: until the fullest one would be a
/// quarter full, as fast as it has filled since the last look. A CPU whose ring is full stands
/// still until the next look. So past kUnearned each wait is at most half as long again as the last
/// one: a burst finds a long wait only after a silence of three times that length. Pure. Fire
/// context: yes.
class ReplayWait {
 public:
  static constexpr std::uint64_t kShortest = 20'000;     // ns
  static constexpr std::uint64_t kUnearned = 5'000'000;  // the longest one at any rate

  explicit ReplayWait(std::uint64_t longest) : longest_(longest) {}

  /// ns, after a look at which the fullest ring was this full, 0 to 1.
  std::uint64_t after(double filled) {
    const double wait = static_cast<double>(wait_) * 0.25 / std::max(filled, 1e-3);
    const std::uint64_t most = std::min(longest_, std::max(kUnearned, wait_ + wait_ / 2));
    wait_ = static_cast<std::uint64_t>(
        std::clamp(wait, double{kShortest}, static_cast<double>(std::max(most, kShortest))));
    return wait_;
  }

 private:
  const std::uint64_t longest_;
  std::uint64_t wait_ = 0;
};

/// A thread that vCPUs wait for: no signals, short sleeps that are short, and before others where
/// the host allows it. `name` has at most 15 characters.
std::thread start_firing_thread(const char* name, std::function<void()> body);
/// Exactly, as far as the host can.
void sleep_ns(std::uint64_t duration);

class Poller {
 public:
  /// Runs until it is destroyed.
  Poller(const ShimTraps& traps, vmm::PollShare share);
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

 private:
  void body();

  const ShimTraps traps_;
  const vmm::PollShare share_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace ringside::providers
