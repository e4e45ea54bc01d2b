// The dispatcher: a trap comes in, and every probe at its address fires, in the order of enabling.
//
// The table of probes by address (dispatch_table.h) never changes. To enable or disable probes, a
// new table is made and takes the place of the old one at once; that begins a new epoch. A firing
// looks at the table while it holds its vCPU's firing lock. So once each lock was free, nobody uses
// the old table.
//
// A gate keeps the promise about when probes fire: nothing fires before open() or after close(). A
// trap that fires nothing is answered, and the guest goes on.
//
// Does not: arm text, or decide where a probe may stand.
// Threads: firings on any thread, several at once; all other calls on one thread at a time.
// Fire context: on_trap() and on_stop() yes; everything else no.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "providers/clock/guest_clock.h"
#include "providers/context/binding.h"
#include "providers/context/linux_context.h"
#include "providers/dispatch/dispatch_table.h"
#include "providers/dispatch/pending_returns.h"
#include "providers/dispatch/probe_sink.h"
#include "providers/dispatch/trap_tally.h"
#include "vmm/linux/kernel.h"
#include "vmm/shim/trap.h"

namespace ringside::providers {

/// Traps that fired nothing, by why.
struct DispatchCounters {
  std::uint64_t closed = 0;       // before open() or after close()
  std::uint64_t no_point = 0;     // no probe there (a late trap)
  std::uint64_t unknown_cpu = 0;  // the per-cpu base belongs to no CPU: the guest lies
  /// Returns of functions that ended in a jump, which too many others have pushed out.
  std::uint64_t lost_returns = 0;
};

class TrapDispatcher final : public vmm::TrapSink, public FireGate {
 public:
  /// `contexts` by the CPU that the guest says it is; firings go to `sink` and get their time from
  /// `clock`. All must outlive it. `first` is what fires in the first epoch.
  TrapDispatcher(const guest_linux::Kernel& kernel, LinuxContexts& contexts, ProbeSink& sink,
                 GuestClock& clock, const DispatchTable::Change& first = {});

  /// Begins the next epoch: the current one with a change. When it returns, no firing of the old
  /// epoch is under way. Do not call it while you hold a firing lock.
  void publish(const DispatchTable::Change& change);
  /// An address for each binding that these probes have in this epoch.
  std::vector<GuestVirt> places_of(std::span<const dif::ProbeId> probes) const {
    return table_->places_of(probes);
  }

  void open() override { open_.store(true, std::memory_order_release); }
  void close() override { open_.store(false, std::memory_order_release); }
  bool is_open() const { return open_.load(std::memory_order_acquire); }

  /// On a thread that polls, or on that of the vCPU that rang.
  void on_trap(const vmm::Trap& trap) override;
  /// The same for a vCPU that was stopped without the shim, and whose CPU is known.
  void on_stop(const vmm::Trap& trap, unsigned vcpu, std::uint32_t cpu);
  /// From now on traps come one at a time, in the order of the guest's TSC over all CPUs. So no
  /// timestamp is before that of the trap before, but where one was very late. Before open().
  void keep_one_order() { is_in_one_order_ = true; }
  /// The same for a trap that was recorded, whose vCPU has gone on; the firing takes place at `now`
  /// or soon after it.
  void replay(const vmm::Trap& trap, std::uint64_t time, const GuestClock::Moment& now);
  DispatchCounters counters() const;
  /// On any thread.
  const TrapTally& tally() const { return tally_; }
  /// The table of the current epoch; only for the thread that publishes.
  const DispatchTable& table() const { return *table_; }

 private:
  using AddressBindings = DispatchTable::AddressBindings;

  bool is_closed();
  /// Which of the kernel's CPUs a trap came from; empty where it says what is none.
  std::optional<std::uint32_t> cpu_of(const vmm::Trap& trap) const;
  std::uint64_t in_order(std::uint64_t time, std::uint64_t tsc, std::uint32_t cpu);
  enum class AfterFiring : std::uint8_t { Resume, StandStill };
  void on_cpu(const vmm::Trap& trap, const FiringVcpu& here, std::uint32_t cpu);
  AfterFiring serve(const vmm::Trap& trap, const FiringVcpu& here, std::uint32_t cpu);
  void fire_at(GuestVirt address, const dif::FireRecord& record, LinuxContext& context);
  void await_return(std::span<const Binding> jump, const dif::FireRecord& record,
                    LinuxContext& context);
  void fire_returns(const DispatchTable::Ends& ends, const dif::FireRecord& record,
                    LinuxContext& context);
  void fire(const Binding& binding, const dif::FireRecord& record, LinuxContext& context);
  void fire_by_number(const DispatchTable& table, const AddressBindings& place,
                      const dif::FireRecord& record, LinuxContext& context);

  const guest_linux::Kernel& kernel_;
  LinuxContexts& contexts_;
  ProbeSink& sink_;
  GuestClock& clock_;
  std::atomic<bool> open_ = false;
  bool is_in_one_order_ = false;
  std::uint64_t latest_ = 0, latest_tsc_ = 0;  // the last time, where they are, and its TSC
  TrapTally tally_;
  PendingReturns pending_;
  std::unique_ptr<const DispatchTable> table_;  // the epoch's
  std::atomic<const DispatchTable*> current_;   // the same, for firings
  std::atomic<std::uint64_t> closed_ = 0, no_point_ = 0, unknown_cpu_ = 0;
};

}  // namespace ringside::providers
