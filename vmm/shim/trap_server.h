// Serves one trap: copies its mailbox, takes its claim, hands it to its handlers, and writes the
// answer. A vCPU stands still until then. Used by MailboxPoller and Shim. Does not: look
// for traps, or know what a trap point is for. Threads: every function from any, beside each other.
// Fire context: yes.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "vmm/shim/mailbox_claims.h"
#include "vmm/shim/mailbox_copier.h"
#include "vmm/shim/shim_layout.h"
#include "vmm/shim/shim_presence.h"
#include "vmm/shim/shim_region.h"
#include "vmm/shim/shim_table.h"
#include "vmm/shim/trap.h"

namespace ringside::vmm {

class TrapServer {
 public:
  using CopyTime = MailboxCopier::Clock::time_point;

  TrapServer(ShimRegion& region, ShimPresence& presence, const ShimTable& table,
             MailboxClaims& claims, ShimPlace place)
      : region_(region), presence_(presence), table_(table), claims_(claims), place_(place) {}

  /// The guest leaves its kernel through the trap point there: the answer to it is the last write.
  /// Before the guest can see that trap point.
  void set_kexec_site(GuestVirt address) {
    kexec_site_.store(address.raw(), std::memory_order_relaxed);
  }

  /// Mailboxes::answer().
  void answer(std::uint32_t mailbox, const TrapHandlers& handlers);
  /// Serves the trap whose head this is, from a copy made now.
  void serve(unsigned mailbox, std::uint64_t head, const TrapHandlers& handlers);
  /// Serves it from a copy that was made by a look that began at `looked`.
  void serve_copy(unsigned mailbox, const MailboxCopy& box, const TrapHandlers& handlers,
                  CopyTime looked);
  /// Mailboxes::waiting().
  std::optional<Registers> waiting(GuestVirt percpu_base) const;

  /// How many named no trap point of ours.
  std::uint64_t rejected() const { return rejected_.load(std::memory_order_relaxed); }
  /// How many were served after the guest had given them up, as a later trap there has told.
  std::uint64_t fired_late() const { return fired_late_.load(std::memory_order_relaxed); }

 private:
  using Watches = std::span<const TrapHandlers::Row>;

  CopyTime copy_time() const;
  Registers registers_of(const MailboxCopy& copy) const;
  void serve_copy(unsigned mailbox, const MailboxCopy& box, TrapSink& sink, Watches watches,
                  CopyTime looked);
  /// The guest may say any address, 0 too.
  bool is_kexec_site(GuestVirt address) const {
    const std::uint64_t site = kexec_site_.load(std::memory_order_relaxed);
    return site != 0 && site == address.raw();
  }
  bool write_answer(std::uint64_t at, const MailboxCopy& box, std::uint64_t& answered,
                    std::uint64_t claim, CopyTime looked);

  ShimRegion& region_;
  ShimPresence& presence_;
  const ShimTable& table_;
  MailboxClaims& claims_;
  const ShimPlace place_;
  std::atomic<std::uint64_t> kexec_site_{0};  // 0: none
  std::atomic<std::uint64_t> rejected_{0}, fired_late_{0};
};

}  // namespace ringside::vmm
