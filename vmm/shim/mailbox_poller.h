// Looks for raised mailboxes and has their traps served. It reads the heads. If memory is only
// copied and traps follow each other closely, it copies everything that a trap needs at once
// (mailbox_copier.h). Most machines use few mailboxes, so mailboxes that were never in use are read
// seldom.
// Used by Shim. Does not: serve a trap itself (TrapServer).
// Threads: poll() on any, one for each share. Fire context: yes.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "guest-shim/mailbox_abi.h"
#include "vmm/shim/control_words.h"
#include "vmm/shim/mailbox_claims.h"
#include "vmm/shim/mailbox_copier.h"
#include "vmm/shim/mailboxes.h"
#include "vmm/shim/shim_presence.h"
#include "vmm/shim/shim_region.h"
#include "vmm/shim/trap_server.h"

namespace ringside::vmm {

class MailboxPoller {
 public:
  MailboxPoller(const ShimRegion& region, const ShimPresence& presence, const ControlWords& control,
                const MailboxClaims& claims, TrapServer& traps, unsigned vcpus);

  /// Mailboxes::poll_share().
  unsigned poll(const TrapHandlers& handlers, PollShare share);

 private:
  /// The mailboxes of one pass.
  struct Pass {
    PollShare share;
    unsigned usual = 0, limit = 0;  // those that are in use, those to look at
  };

  template <typename Found>
  void for_each_raised(const Pass& pass, Found found);
  unsigned poll_heads(const TrapHandlers& handlers, const Pass& pass);
  unsigned poll_ahead(const TrapHandlers& handlers, const Pass& pass, MailboxCopier& looks);
  bool is_any_raised(const Pass& pass);
  unsigned serve_looked_at(const TrapHandlers& handlers, const Pass& pass, MailboxCopier& looks);
  void look_up_to(unsigned limit);

  const ShimRegion& region_;
  const ShimPresence& presence_;
  const ControlWords& control_;
  const MailboxClaims& claims_;
  TrapServer& traps_;
  std::atomic<unsigned> scan_limit_;                   // mailboxes that polling looks at every time
  std::vector<std::unique_ptr<MailboxCopier>> looks_;  // by index of the share; none where mapped
  std::array<std::atomic<unsigned>, SHIM_MAILBOXES> polls_{};  // by index of the share
};

}  // namespace ringside::vmm
