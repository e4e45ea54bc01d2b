// The words of struct shim_control that tell the shim how to wait and whom to ring (guest-shim/
// mailbox_abi.h), and the heartbeat that tells it that we live. A word is written only if it still
// has the value that we wrote last, and only while the shim is there.
// Used by Shim and its parts. Does not: write the timeout (ShimPresence), or count.
// Threads: beat(), set_doorbell() and may_have_timed_out() on any; all else one at a time.
// Fire context: beat() and may_have_timed_out() yes, everything else no.
#pragma once

#include <atomic>
#include <cstdint>

#include "vmm/shim/mailbox_copier.h"
#include "vmm/shim/shim_presence.h"
#include "vmm/shim/shim_region.h"

namespace ringside::vmm {

class ControlWords {
 public:
  ControlWords(ShimRegion& region, ShimPresence& presence) : region_(region), presence_(presence) {}

  /// Mailboxes::activate(), with a heartbeat.
  void activate();
  void deactivate();
  /// Mailboxes::heartbeat(). A count that is not ours tells that the shim is not there any more.
  void beat();
  void set_doorbell(std::uint16_t port);
  void let_full_rings_wait(bool wait);
  void note_arming();
  /// Whether a shim may have taken its request back lately, as long ago as the last heartbeat is.
  bool may_have_timed_out() const;

 private:
  using Clock = MailboxCopier::Clock;

  ShimRegion& region_;
  ShimPresence& presence_;
  std::atomic<std::uint64_t> heartbeat_{0};
  std::atomic<std::uint64_t> doorbell_{0}, full_waits_{0};
  std::uint64_t armings_ = 0;
  std::atomic<Clock::time_point> beat_{};  // when the heartbeat was last written
};

}  // namespace ringside::vmm
