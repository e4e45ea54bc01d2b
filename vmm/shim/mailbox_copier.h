// Looks for traps in the mailboxes of a shim whose memory is only copied. Each look is a system
// call, which takes longer than a firing's evaluation.
//
// While traps follow each other, one call copies all that a trap needs: the heads of the
// mailboxes, then the boxes, then the words that tell whether the shim is still there, then what
// the firings will read (vmm/read_ahead.h). Otherwise a look copies the heads alone.
//
// A look that comes too early finds nothing, and delays the one that finds the trap. So looks are
// paced: after an answer, the next look waits about as long as the guest took the last times to
// trap again.
//
// Used by Shim, one for each thread that polls. Fire context: yes.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <span>

#include "guest-shim/mailbox_abi.h"
#include "vmm/read_ahead.h"
#include "vmm/shim/shim_region.h"

namespace ringside::vmm {

/// How long after its answer a guest raises its next mailbox, followed by what looks find: late is
/// cheaper than in vain. Pure.
class CopyPace {
 public:
  using Time = std::chrono::nanoseconds;
  static constexpr Time kMost{4000};  // a guest that needs longer is looked at all the time
  static constexpr Time kEarlier{20}, kLater{160};

  Time wait() const { return wait_; }
  void found() { wait_ -= std::min(wait_, kEarlier); }
  void found_nothing() { wait_ = std::min(wait_ + kLater, kMost); }

 private:
  Time wait_{0};
};

class MailboxCopier {
 public:
  using Clock = std::chrono::steady_clock;

  explicit MailboxCopier(const GuestMemory& memory) : reads_(memory) {}

  /// Held by the one thread that looks.
  std::mutex& lock() { return lock_; }
  /// Whether the next look will find something, as the last ones did.
  bool expects_traps() const { return in_vain_ < kInVain; }
  /// Until the time for that look.
  void wait_for_next() const;
  /// `also`: read by the same call. False when something could not be read; what is read ahead is
  /// left out then.
  bool look(const ShimRegion& region, unsigned mailboxes, std::span<const GuestMemory::Part> also);
  void found(unsigned traps);

  Clock::time_point began() const { return began_; }
  /// The head of a mailbox; only of those that the last look was for.
  std::uint64_t head(unsigned mailbox) const;
  MailboxCopy copy(unsigned mailbox) const;
  ReadAhead& reads() { return reads_; }

 private:
  static constexpr unsigned kInVain = 4;

  std::mutex lock_;
  CopyPace pace_;
  unsigned in_vain_ = kInVain;  // looks since one that found something
  Clock::time_point began_, answered_;
  std::array<std::byte, std::size_t{SHIM_MAILBOXES} * (SHIM_HEAD_SIZE + SHIM_BOX_SIZE)> mailboxes_;
  unsigned looked_at_ = 0;  // how many: their heads, the last one's first, and their boxes
  ReadAhead reads_;
};

}  // namespace ringside::vmm
