// The trap point table: each address of guest text where a trap of ours may stand, and its slot,
// in which the displaced instruction runs. Used by every provider whose probes stand on
// instructions. Several probes at one address share a trap point.
//
// A trap is an int3. Where use_jumps() allows it, and where it is proven that nobody can notice,
// it is a jump to a record of its own (vmm/shim/jump_record.h). There still is a slot, so that the
// jump can become an int3 at any time. A jump has no entry in the shim's table: an int3 that
// appears inside such a jump is the guest's own kprobe.
//
// Writes: one byte of live text for each int3, five for each jump, and the old bytes back; nothing
// else.
// Threads: one at a time. These may run beside all others: drop_changed(), stands_in_function(),
// step_aside(), step_back(), rest(), wake(), stands_at(), has_displaced(), keep_in_place() and
// kprobe_table().
// Fire context: no.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "providers/trap_points/sites/probe_site.h"
#include "providers/trap_points/trap_point_types.h"
#include "vmm/base/address.h"
#include "vmm/base/guest_reader.h"
#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/text/kprobes.h"
#include "vmm/machine.h"
#include "vmm/shim/trap_table.h"

namespace ringside::providers {

class TrapPointTable {
 public:
  /// All must outlive it. Nothing is asked of `shim` before the first add().
  TrapPointTable(vmm::Machine& machine, vmm::TrapTable& shim, guest_linux::Kernel& kernel);
  ~TrapPointTable();

  /// Whether an int3 may stand here; the error (Unsupported) is the reason, for -l -v.
  Result<ProbeSite> examine(GuestVirt address, SitePolicy policy = SitePolicy::Normal);
  /// If this number has changed, sites that were examined before may have a kprobe of the guest by
  /// now.
  std::uint64_t generation() const;

  /// Makes the trap point, or gives it one more user: displaces the instruction, writes its slot.
  /// The guest's text does not change yet, and an int3 there is the guest's own until arm(). The
  /// same address gives the same id. If the guest had changed its text there (is_dropped), the
  /// trap point starts again with the new site, and earlier users do not count any more.
  Result<TrapPointId> add(const ProbeSite& site);
  Result<TrapPointId> examine_and_add(GuestVirt at) { return add(TRY(examine(at))); }
  /// Removes one user. A trap point without users is not armed again, and disarm_unused() restores
  /// it.
  void release(GuestVirt address);
  /// Traps at these trap points go into the rings of their CPUs and wait for nobody
  /// (vmm/shim/record_rings.h). Before they are armed, else Invalid. Unsupported where there are no
  /// rings.
  Result<void> record_at(std::span<const GuestVirt> addresses, std::uint8_t list = 0);
  /// By which fetch list traps at `address` are recorded; empty: they wait, or nothing is there.
  std::optional<std::uint8_t> recording_at(GuestVirt address) const;
  /// Whether there is a trap point at `address` whose text the guest has changed.
  bool is_dropped(GuestVirt address) const;
  /// The place where the guest starts another kernel (kexec). Empty for a kernel that cannot; an
  /// error if no trap point can stand there. A trap point at this address also tells the shim that
  /// the guest leaves its kernel (TrapTable::kexec_notice), before its instruction runs, and even
  /// if no host listens.
  const Result<std::optional<GuestVirt>>& kexec_site() const;
  std::size_t size() const;
  /// Besides the slots there is one entry for each instruction that a jump has displaced, and one
  /// for the start of its record.
  std::span<const Slot> slots() const;

  /// Drops the trap points in this text, because the guest has loaded a module there.
  /// drop_changed() returns those that were armed.
  void drop_in(const guest_linux::Kernel::AddressRange& range);

  /// Reads again where the guest's own kprobes stand. Call it before many sites are examined,
  /// because the guest runs.
  void look_again();
  /// From now on arm() makes jumps where it can.
  void use_jumps(FindStanding find, IsInside is_inside);
  /// Makes the records of jumps that arm() may write. Before the pause.
  void prepare_jumps();
  /// Before arm(), in the same pause: finds out which vCPUs and tasks stand at places where jumps
  /// are planned. An error means that it is not known: let the guest run for a moment and try
  /// again. Jumps that cover a place to be armed become int3s at once, so that nobody enters their
  /// records any more. The error remains until everybody has left those records.
  Result<void> find_standing(vmm::PausedMachine& machine);

  /// Whether the guest was stopped in the middle of a change to its text. Then we may read half of
  /// the change, and the guest may have read the text without our int3s: let it run for a moment.
  using Changes = guest_linux::KprobeTable::Changes;
  bool is_text_changing(vmm::PausedMachine& machine, Changes changes = Changes::OfText) const;
  /// The guest's list of kprobes, for a reader of the caller's own. It never changes: any thread.
  const guest_linux::KprobeTable& kprobe_table() const;
  /// Writes an int3 or a jump at every trap point that has users and is not armed, in this one
  /// pause, and checks that it is there. Not while is_text_changing(). Without find_standing() all
  /// are int3s. If a function has changed, or a kprobe of the guest stands at a place, the
  /// trap point is dropped: drop_changed() returns it. After an error some may have been written:
  /// disarm() restores those.
  Result<void> arm(vmm::PausedMachine& machine);
  /// Restores every armed byte that still is ours, except the one of searches_faults(). After it, a
  /// late trap resumes without firing. Trap points that could not be restored stay armed. If the
  /// guest runs another kernel now, that is all of them (TrapTable::check_mapped).
  Result<void> disarm(vmm::PausedMachine& machine);
  /// Whether a breakpoint stands at the kernel's search of its exception table (site_examiner.h).
  /// It must stay while somebody may be inside a slot: a missing page may take long to arrive. Then
  /// disarm_fault_search() restores it.
  bool searches_faults() const;
  Result<void> disarm_fault_search(vmm::PausedMachine& machine);
  /// As disarm(), but only for trap points without users; the others stay as they are.
  Result<void> disarm_unused(vmm::PausedMachine& machine);
  /// Takes trap points that have no users and are not armed out of the shim's table, so that an
  /// int3 there is the guest's own again. Call it once every trap that began before they were
  /// restored has its answer.
  void park_unused();
  /// The same with or without users, for a shim that has to stay when tracing has ended. Traps that
  /// began earlier go on without firing.
  void park_restored();
  /// Whether an int3 or jump of ours may stand in the text, or be part of a kprobe of the guest's
  /// own: then the guest needs the shim.
  bool any_armed() const;
  /// Whether a kprobe of the guest's own has copied a jump of ours, which it runs from there.
  bool is_copied_by_kprobe() const;
  /// How many there are of these. On any thread.
  std::size_t armed() const;
  /// How many of those are jumps, and how many record. On any thread.
  std::size_t jumps() const;
  std::size_t recording() const;

  /// Kernel text as it is without our breakpoints and without the guest's kprobes. Use it wherever
  /// text is read to find sites: an int3 in the way would put a sweep out of step.
  const GuestReader& original_text() const;

  bool is_armed(TrapPointId id) const;

  /// Whether an int3 of ours stands in the function that `at` lies in.
  bool stands_in_function(GuestVirt at) const;
  /// The guest is about to read the function that contains `at` as code: restores its bytes until
  /// step_back() or arm(). Late traps still fire. Returns whether there were int3s of ours.
  Result<bool> step_aside(vmm::PausedMachine& machine, GuestVirt at);
  /// Arms again what step_aside() has restored; those where a kprobe of the guest has come to stand
  /// are dropped, as by arm(). False, and nothing is done, while the guest is changing its text.
  Result<bool> step_back(vmm::PausedMachine& machine);

  /// Restores the trap point at `at` until wake() or arm(): for a watch that has nothing to see for
  /// now. Nothing is done where a probe uses it, too.
  Result<void> rest(vmm::PausedMachine& machine, GuestVirt at);
  /// Arms it again. False, and nothing is done, while the guest sets a kprobe, and after disarm().
  Result<bool> wake(vmm::PausedMachine& machine, GuestVirt at);
  bool stands_at(GuestVirt at) const;

  /// Whether a jump of ours has displaced the instruction at `at`, which does not run there.
  bool has_displaced(GuestVirt at) const;
  /// The guest has a hardware breakpoint at `at`: a jump that has displaced it becomes an int3, and
  /// none does from now on.
  Result<void> keep_in_place(vmm::PausedMachine& machine, GuestVirt at);

  /// Reads every armed byte again. Trap points whose bytes the guest has changed (module unloaded,
  /// text patched) are dropped and returned, together with those that arm() and disarm() found
  /// changed. Called at switchrate, on any thread. If another thread changes the table at the same
  /// time, it does nothing.
  std::vector<GuestVirt> drop_changed();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ringside::providers
