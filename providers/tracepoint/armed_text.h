// The guest's text where tracepoints stand: chooses those that may be armed, writes their int3s and
// jumps, restores what was there, and looks whether ours is there still. Used by the tracepoint
// table and its parts.
// Does not: decide which are jumps (jump_planner.h).
// Threads: whoever holds the table's lock: for choose(), which reads text as examinations do, the
// one that adds tracepoints, for all else any. is_copied_by_kprobe() needs no lock.
// Fire context: no.
#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "providers/tracepoint/fault_search_point.h"
#include "providers/tracepoint/probed_text.h"
#include "providers/tracepoint/tracepoint_store.h"
#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"
#include "vmm/machine.h"
#include "vmm/page_walk.h"
#include "vmm/shim/shim.h"

namespace ringside::providers {

class ArmedText {
 public:
  using Id = TracepointStore::Id;
  using Which = TracepointStore::Which;
  /// All must outlive it.
  struct Parts {
    vmm::Shim& shim;
    const ProbedText& text;
    TracepointStore& store;
    const FaultSearchPoint& search;
  };

  ArmedText(vmm::Machine& machine, const guest_linux::Kernel& kernel, const Parts& parts);

  /// Those that are used and not armed, less those that cannot be, which are dropped.
  std::vector<Id> choose();
  /// Writes them, jumps where may_jump(point), and looks whether they are there.
  Result<void> arm(vmm::PausedMachine& machine, std::vector<Id> arming, const Which& may_jump);
  /// Writes what makes traps, of which the entries are as they have to be.
  Result<void> write(vmm::PausedMachine& machine, std::span<const vmm::VirtualCodeWrite> writes);
  /// Restores the armed ones for which wanted(point).
  Result<void> restore(vmm::PausedMachine& machine, const Which& wanted);
  /// Drops those that the guest has changed.
  void drop_changed();
  /// Whether code of the guest's leads into the shim, since it has copied a jump.
  bool is_copied_by_kprobe() const { return is_copied_by_kprobe_; }

  /// For whoever holds the table's lock; forget() comes first. The text as it is in this pause.
  const vmm::PageTableReader& reader() const { return reader_; }

 private:
  bool stands(const Tracepoint& point) const;
  bool are_copied(std::span<const Id> ids) const;

  const Parts parts_;
  const vmm::PageTable table_;  // the kernel's own, whatever a stopped vCPU is in
  const vmm::PageTableReader reader_;
  std::atomic<bool> is_copied_by_kprobe_ = false;
};

}  // namespace ringside::providers
