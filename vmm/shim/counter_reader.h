// The counters of a shim: those that the guest keeps in its mailboxes and control words, and our
// own. If the shim is gone, it returns the values that were read last while the shim was there.
// Used by InstalledShim. Does not change any counter.
// Threads: any. Fire context: no.
#pragma once

#include <mutex>

#include "vmm/shim/mailbox_claims.h"
#include "vmm/shim/shim.h"
#include "vmm/shim/shim_presence.h"
#include "vmm/shim/shim_region.h"
#include "vmm/shim/trap_server.h"

namespace ringside::vmm {

class CounterReader {
 public:
  CounterReader(const ShimRegion& region, const ShimPresence& presence, const MailboxClaims& claims,
                const TrapServer& traps)
      : region_(region), presence_(presence), claims_(claims), traps_(traps) {}

  /// Shim::counters().
  ShimCounters read() const;

 private:
  ShimCounters sum() const;

  const ShimRegion& region_;
  const ShimPresence& presence_;
  const MailboxClaims& claims_;
  const TrapServer& traps_;
  mutable std::mutex lock_;
  mutable ShimCounters last_;
};

}  // namespace ringside::vmm
