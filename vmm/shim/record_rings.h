// The host's end of the rings, into which the guest records traps that wait for nobody
// (guest-shim/mailbox_abi.h). Copies records out of them, makes room for more, and tells what was
// dropped. Every word of a ring is the guest's: the counts, which may be forged, and the records.
// A record that cannot be ours is counted and left out.
//
// Each CPU has two rings, one for traps inside of traps, and each of those is a ring here: number
// 2 * cpu, and 2 * cpu + 1.
// Used by Shim; what replays traps reads them (providers/fire/replay.h). Does not: put traps in the
// order of their times.
// Threads: look() and take() on one at a time; counters() and is_any_busy() on any.
// Fire context: yes, but for the constructor and set_lists().
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "guest-shim/mailbox_abi.h"
#include "vmm/shim/fetch_list.h"
#include "vmm/shim/shim_layout.h"
#include "vmm/shim/shim_presence.h"
#include "vmm/shim/shim_region.h"
#include "vmm/shim/shim_table.h"
#include "vmm/shim/trap.h"

namespace ringside::vmm {

class RecordRings {
 public:
  struct Counters {
    std::uint64_t records = 0;   // that the guest has written
    std::uint64_t dropped = 0;   // traps that found their ring full
    std::uint64_t unwanted = 0;  // traps that had no record, as a check did not hold
    std::uint64_t late = 0;      // that found the shim not active
    std::uint64_t rejected = 0;  // records that are none of ours
  };

  /// Writes what the guest has to know of its rings, which are empty.
  RecordRings(ShimRegion& region, const ShimPresence& presence, const ShimTable& table,
              const ShimLayout& layout, GuestVirt base);
  RecordRings(const RecordRings&) = delete;
  RecordRings& operator=(const RecordRings&) = delete;

  /// Of all CPUs: twice their number.
  std::size_t size() const { return rings_.size(); }
  /// The most records that one holds, and the most bytes of runs that each has.
  std::size_t capacity() const { return most(0) + 1; }
  std::size_t run_bytes() const { return record_bytes() - SHIM_RECORD_CR3; }
  /// The fetch lists of trap points, from number 1 on. Records become as large as the longest one
  /// needs, so a ring holds fewer. `uses_default`: number 0 is used, too. Before anything is
  /// recorded. Limit when a ring would hold too few.
  Result<void> set_lists(std::vector<FetchList> lists, bool uses_default = true);
  /// From number 1 on; those with a stack have as much room for it as there is.
  std::span<const FetchList> lists() const { return std::span(lists_).subspan(1); }
  /// Whether there is a list of this number, and records are large enough for it.
  bool has_room_for(std::uint8_t list) const { return list < SHIM_LISTS && has_room_for_[list]; }

  /// Copies how far the guest has come in each ring. False when the shim is not there any more:
  /// then all are empty.
  bool look();
  /// At the last look: whether the guest was writing a record there.
  bool is_busy(std::size_t ring) const { return rings_[ring].busy; }
  /// At the last look: how many traps had been dropped.
  std::uint64_t dropped() const;
  /// How many records of that look take() has not copied yet.
  std::size_t waiting(std::size_t ring) const {
    return static_cast<std::size_t>(rings_[ring].head - rings_[ring].tail);
  }
  /// Copies the next ones of them, as many as `out` takes, and lets the guest write over them.
  /// `out` is new, or what earlier calls have put there.
  /// Returns how many there were; those that are no traps of ours are left out. `runs`: room for
  /// the runs of each, of run_bytes() one after the other, which its Trap will name; not needed
  /// without lists.
  std::size_t take(std::size_t ring, std::span<Trap> out, std::span<std::byte> runs = {});

  /// On any thread: whether a CPU writes a record now.
  bool is_any_busy() const;
  Counters counters() const;

 private:
  struct Ring {
    std::uint64_t head = 0, tail = 0;
    bool busy = false;
  };
  std::uint64_t words_at(std::size_t ring) const {
    return layout_.ring_at(static_cast<unsigned>(ring / 2)) + ring % 2 * SHIM_RING_NESTED;
  }
  std::uint64_t records_at(std::size_t ring) const {
    const auto cpu = static_cast<unsigned>(ring / 2);
    return ring % 2 == 0 ? layout_.records_at(cpu) : layout_.nested_records_at(cpu, record_shift_);
  }
  std::uint64_t most(std::size_t ring) const {
    const std::uint64_t records =
        ring % 2 == 0 ? layout_.ring_records(record_shift_) : layout_.nested_records(record_shift_);
    return records - 1;
  }
  std::size_t record_bytes() const { return std::size_t{1} << record_shift_; }
  void tell_guest();
  bool holds_enough(unsigned shift) const { return layout_.ring_records(shift) >= kFewestRecords; }
  static void keep_runs(Trap& trap, const FetchList& list, std::span<const std::byte> record,
                        std::byte* runs);
  bool copy_words();
  void note(std::size_t ring);
  void give_back(std::size_t ring, std::uint64_t tail);
  void reject(std::uint64_t count) { rejected_.fetch_add(count, std::memory_order_relaxed); }

  ShimRegion& region_;
  const ShimPresence& presence_;
  const ShimTable& table_;
  const ShimLayout layout_;
  std::vector<Ring> rings_;
  std::vector<shim_ring> earlier_words_, words_;  // copied by the last look, in this order
  const GuestVirt base_;
  const ShimPlace place_;
  unsigned record_shift_ = kDefaultRecordShift;
  std::vector<FetchList> lists_;  // number 0 is the default one
  std::array<bool, SHIM_LISTS> has_room_for_{};
  std::vector<std::byte> records_;  // copied at once
  std::atomic<std::uint64_t> rejected_{0};
};

}  // namespace ringside::vmm
