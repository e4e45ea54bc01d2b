// The guest's text where trap points stand: chooses trap points that may be armed, writes their
// int3s and jumps, restores the old bytes, and checks whether ours are still there. Takes them out
// for a moment while the guest sets a kprobe. Used by the trap point table and its parts.
// Does not: decide which are jumps (jump_planner.h).
// Threads: choose(), which reads text as examinations do, on the thread that adds trap points; all
// else on any. All need the table's lock, except is_copied_by_kprobe().
// Fire context: no.
#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <vector>

#include "providers/trap_points/probed_text.h"
#include "providers/trap_points/trap_point_store.h"
#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"
#include "vmm/machine.h"
#include "vmm/page_walk.h"
#include "vmm/shim/trap_table.h"

namespace ringside::providers {

/// The trap point at the kernel's search of its exception table (sites/site_examiner.h). Does not:
/// find the place, or restore it. Threads: ensure() on the one that adds trap points; all else as
/// TrapPointStore.
class FaultSearchPoint {
 public:
  /// Both must outlive it.
  FaultSearchPoint(ProbedText& text, TrapPointStore& store) : text_(text), store_(store) {}

  /// Makes it unless it is there: before a point whose instruction may fault.
  Result<void> ensure();
  bool is_at(const TrapPoint& point) const { return id_ && &point == &store_[*id_]; }
  bool is_armed() const;
  /// Whether it stands once these are armed.
  bool is_there_with(std::span<const TrapPointStore::Id> arming) const;

 private:
  ProbedText& text_;
  TrapPointStore& store_;
  std::optional<TrapPointStore::Id> id_;  // once some may fault
};

class ArmedText {
 public:
  using Id = TrapPointStore::Id;
  using Which = TrapPointStore::Which;
  /// All must outlive it.
  struct Parts {
    vmm::TrapTable& shim;
    const ProbedText& text;
    TrapPointStore& store;
    const FaultSearchPoint& search;
  };

  ArmedText(vmm::Machine& machine, const guest_linux::Kernel& kernel, const Parts& parts);

  /// The trap points that have users and are not armed. Those that cannot be armed are dropped.
  std::vector<Id> choose();
  /// Writes them, jumps where may_jump(point), and looks whether they are there.
  Result<void> arm(vmm::PausedMachine& machine, std::vector<Id> arming, const Which& may_jump);
  /// Writes what makes traps, of which the entries are as they have to be.
  Result<void> write(vmm::PausedMachine& machine, std::span<const vmm::VirtualCodeWrite> writes);
  /// Restores the armed ones for which wanted(point).
  Result<void> restore(vmm::PausedMachine& machine, const Which& wanted);
  /// Drops those that the guest has changed.
  void drop_changed();

  /// Before the guest sets a kprobe, it reads the text of the function as code (noticed by
  /// providers/tracer/kprobe_watch.h). Restores all trap points in the function that contains `at`;
  /// returns whether there were any.
  Result<bool> step_aside(vmm::PausedMachine& machine, GuestVirt at);
  /// Arms them again, as int3s, but for those where a kprobe has come to stand, which are dropped.
  /// False, and nothing is done, while the guest is changing its text.
  Result<bool> step_back(vmm::PausedMachine& machine);
  /// Restores the trap point at `at`, unless somebody else uses it, too.
  Result<void> rest(vmm::PausedMachine& machine, GuestVirt at);
  /// Arms it again, as an int3. False, and nothing is done, while the guest sets a kprobe, and once
  /// tracing ends.
  Result<bool> wake(vmm::PausedMachine& machine, GuestVirt at);
  /// From now on nothing comes back that stepped aside or rests.
  void end() {
    stepped_aside_.clear();
    has_ended_ = true;
  }
  /// Whether code of the guest's leads into the shim, since it has copied a jump.
  bool is_copied_by_kprobe() const { return is_copied_by_kprobe_; }

  /// The text as it is in this pause. Needs the table's lock, and forget() before it.
  const vmm::PageTableReader& reader() const { return reader_; }

 private:
  Result<void> arm_again(vmm::PausedMachine& machine, std::span<const Id> ids);
  bool stands(const TrapPoint& point) const;
  bool are_copied(std::span<const Id> ids) const;

  const Parts parts_;
  const vmm::PageTable table_;  // the kernel's own, whatever a stopped vCPU is in
  const vmm::PageTableReader reader_;
  std::vector<Id> stepped_aside_;
  bool has_ended_ = false;
  std::atomic<bool> is_copied_by_kprobe_ = false;
};

}  // namespace ringside::providers
