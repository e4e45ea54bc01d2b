// The half of the shim that firing uses: it serves the mailboxes in which traps wait, and tells
// where a vCPU stands that is inside the shim. Used by the fire thread, pollers, vCPUs' threads and
// the sampler.
//
// There are two channels. Spin: the host polls all mailboxes all the time (poll). Exit: the shim
// writes the index of its mailbox to a port, which stops the vCPU, and the vCPU's own thread
// answers that mailbox (answer). The shim waits in the same way in both, so both may be used at
// once: whichever thread comes first answers.
//
// Fire context: poll(), answer(), heartbeat(), waiting(), contains() and displaced_from() yes;
// everything else no. Threads: activate() and deactivate() on one at a time; all else on any,
// beside each other.
#pragma once

#include <cstdint>
#include <optional>

#include "vmm/arch/arch.h"
#include "vmm/base/address.h"
#include "vmm/shim/trap.h"

namespace ringside::vmm {

struct ShimCounters {
  std::uint64_t firings = 0;   // int3s of ours that the shim saw
  std::uint64_t orphans = 0;   // resumed without the host: lost firings
  std::uint64_t dropped = 0;   // not recorded, since the ring was full: lost firings
  std::uint64_t spoiled = 0;   // records that were not as the shim writes them: lost firings
  std::uint64_t unwanted = 0;  // not recorded, since no predicate would be true
  std::uint64_t late = 0;      // resumed unfired because the shim was not active
  std::uint64_t foreign = 0;   // kernel-mode int3s passed on to the kernel's own handler
  std::uint64_t rejected = 0;  // mailboxes that named no trap point of ours: answered, not fired
};

/// Every `count`-th mailbox, from `index` on.
struct PollShare {
  unsigned index = 0, count = 1;
};

struct Displaced {
  GuestVirt from;      // the trap point
  unsigned words = 0;  // that the stack has on top of what it has there
};

class Mailboxes {
 public:
  virtual ~Mailboxes() = default;

  /// From now on traps wait for the host (heartbeat included); before, they resume unfired.
  virtual void activate() = 0;
  /// From now on traps resume at once, unfired and not counted as lost. Traps that began before
  /// still need an answer: poll() until quiescent().
  virtual void deactivate() = 0;
  /// Serves every raised mailbox of a share once; returns how many. On several threads, one for
  /// each share.
  virtual unsigned poll_share(const TrapHandlers& handlers, PollShare share) = 0;
  /// The same for all mailboxes.
  unsigned poll(const TrapHandlers& handlers) { return poll_share(handlers, PollShare{}); }
  /// From now on traps ring at `port`; 0: they do not. Traps that rang before are not affected.
  virtual void set_doorbell(std::uint16_t port) = 0;
  /// Serves one mailbox if it is raised, on its vCPU's thread. A trap that has a watch is left to a
  /// thread that polls. `mailbox`: the guest wrote it to the port; may be any number.
  virtual void answer(std::uint32_t mailbox, const TrapHandlers& handlers) = 0;
  /// Tells the shim that the host lives; at least every 100 ms while trap points are armed.
  virtual void heartbeat() = 0;
  /// True when no mailbox is claimed: every trap that began has been answered.
  virtual bool quiescent() const = 0;
  virtual ShimCounters counters() const = 0;

  /// Whether `pc` lies in the shim's region.
  virtual bool contains(GuestVirt pc) const = 0;
  /// The registers at the int3 of the CPU with this per-CPU base; empty unless it waits in the
  /// shim.
  virtual std::optional<Registers> waiting(GuestVirt percpu_base) const = 0;
  /// The trap point whose displaced instruction, or jump's record, `pc` is in; empty: it is in no
  /// slot of one. `top`: the word on top of the stack, by which a slot of several is known.
  virtual std::optional<Displaced> displaced_from(GuestVirt pc, std::uint64_t top) const = 0;
};

}  // namespace ringside::vmm
