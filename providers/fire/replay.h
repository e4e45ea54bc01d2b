// Fires the traps that the guest has recorded (vmm/shim/record_rings.h), in the order of the
// guest's TSC over all CPUs, some milliseconds after they happened.
//
// A ring is in order by itself. To merge them, a trap fires once no earlier one can come any more:
// the host notes the time, then looks at the rings. A CPU that was not writing a record then will
// write only later ones. One that was is waited for, unless it stands still for longer than
// kLongestRecord: its record then fires late, and is counted.
// The host fires too (timers), and so do traps that wait for an answer. Each of those first lets
// all fire that was recorded before it. So globals and self-> never see a later firing first. That
// may take long, so the shim's heart beats meanwhile.
//
// Times are compared by what is known of the guest's clock now (GuestClock). Records have theirs
// from when they were copied, which is never too early. The first records are kept for kSettling,
// so that several looks tell how the guest's clock goes: intervals between them are then right.
//
// Used by the fire loop, and in the dispatcher's stead by what serves traps that wait.
// Threads: any, one at a time; the others wait.
// Fire context: yes, but for the constructor.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "providers/clock/guest_clock.h"
#include "providers/dispatch/dispatch.h"
#include "vmm/base/brief_lock.h"
#include "vmm/shim/mailboxes.h"
#include "vmm/shim/record_rings.h"
#include "vmm/shim/trap.h"

namespace ringside::providers {

class Replay final : public vmm::TrapSink {
 public:
  static constexpr std::uint64_t kLongestRecord = 100'000'000;  // ns
  static constexpr std::uint64_t kSettling = 50'000'000;        // ns

  /// All must outlive it. `shim`: whose rings they are.
  Replay(vmm::Mailboxes& shim, vmm::RecordRings& rings, TrapDispatcher& dispatcher,
         GuestClock& clock);
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  /// Fires what is certain to be next, for about a millisecond. Returns how full the fullest ring
  /// was, 0 to 1.
  double pass();
  /// Fires all whose time is before now.
  void catch_up();
  /// Fires all that was recorded until now, whatever its time is: other probes come or go next.
  void empty_rings();
  /// Fires all, and does not wait for a CPU that writes a record: after the shim was deactivated
  /// and is_quiet(), nothing is left.
  void drain();
  /// Whether no CPU writes a record.
  bool is_quiet() const { return !rings_.is_any_busy(); }
  /// A trap whose vCPU stands still: fires after all that was recorded before it.
  void on_trap(const vmm::Trap& trap) override;

  /// When traps found their ring full, as far as looks at the rings tell: after `from`, and before
  /// `until`. Times of the time line; 0: none did.
  struct DropSpan {
    std::uint64_t from = 0, until = 0;
  };
  /// On any thread.
  DropSpan drop_span() const {
    return {drops_from_.load(std::memory_order_relaxed),
            drops_until_.load(std::memory_order_relaxed)};
  }
  /// Traps that fired after later ones. On any thread.
  std::uint64_t late() const { return late_.load(std::memory_order_relaxed); }

 private:
  struct Recorded {
    const vmm::Trap& trap;
    std::uint64_t time = 0;
  };
  /// Records that were copied of a ring and have not fired yet: `count` from `first` on, round and
  /// round.
  struct Queue {
    explicit Queue(const vmm::RecordRings& rings)
        : traps(rings.capacity()),
          times(rings.capacity()),
          runs(rings.capacity() * rings.run_bytes()) {}
    std::uint64_t tsc() const { return traps[first].tsc; }  // of the first one
    Recorded front() const { return {traps[first], times[first]}; }
    void pop();

    std::vector<vmm::Trap> traps;
    std::vector<std::uint64_t> times;  // of traps
    std::vector<std::byte> runs;       // what the traps' records copied
    std::size_t first = 0, count = 0;
    std::size_t owed = 0;  // how many are to fire in any case, of these and of those in the ring
    std::uint64_t last_time = 0, last_tsc = 0;  // of the last one that was copied
    /// The host's TSC when its CPU was last seen not to write and all was copied.
    std::uint64_t quiet = 0;
  };
  /// A ring whose records fire next: the first one, and those before this TSC.
  struct Turn {
    bool goes_on() const { return queue->count != 0 && queue->tsc() < until; }

    Queue* queue = nullptr;
    std::uint64_t until = UINT64_MAX;
  };
  /// A ring that may get a record which is earlier than the last look.
  struct Held {
    std::uint64_t tsc = 0;   // but no earlier than this one of the guest's,
    std::uint64_t time = 0;  // and this one on the time line
  };
  static constexpr std::size_t kAtOnce = 32;

  std::size_t fetch();
  void note_drops(std::uint64_t looked);
  void take(std::size_t ring, std::uint64_t looked);
  void find_held(std::uint64_t now);
  bool is_settling(std::uint64_t now, std::size_t most);
  void settle();
  bool is_certain(const Recorded& recorded) const;
  bool is_all_fetched() const;
  bool is_fetched(const Recorded& recorded) const;
  Turn next();
  void look_at_time();
  template <class Wanted>
  void fire_while(Wanted wanted);
  template <class Wanted>
  void fire_all(std::uint64_t time, Wanted wanted);

  vmm::Mailboxes& shim_;
  vmm::RecordRings& rings_;
  TrapDispatcher& dispatcher_;
  GuestClock& clock_;
  BriefLock lock_;  // for all that follows
  std::vector<Queue> queues_;
  // Of the last look.
  std::uint64_t horizon_ = 0;  // no trap that comes later is before this time, but in those:
  std::vector<Held> held_;
  std::uint64_t first_found_ = 0;    // the host's TSC when a record was first found; 0: none was
  std::uint64_t nobody_waited_ = 0;  // the host's TSC when it was last seen that no trap waits
  std::uint64_t fired_ = 0;          // the TSC of the last one that fired
  std::uint64_t beat_ = 0;           // the host's TSC at the last heartbeat of ours
  std::uint64_t now_ = 0;            // the host's TSC before the firing that is next
  GuestClock::Moment moment_;        // a moment of late
  std::uint64_t dropped_ = 0;        // traps, at the last look
  std::uint64_t looked_ = 0;         // the time of it; 0: there was none
  std::atomic<std::uint64_t> late_ = 0, drops_from_ = 0, drops_until_ = 0;
};

}  // namespace ringside::providers
