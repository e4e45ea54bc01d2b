// A thread that answers the traps of its share of the mailboxes. The fire thread has the first
// share. More pollers serve more vCPUs at once, but each takes a host CPU while it spins. Used by
// the fire loop. Fire context: the thread's body.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "providers/fire/shim_traps.h"

namespace ringside::providers {

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
