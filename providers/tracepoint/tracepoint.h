// The tracepoint table: each address of guest text where a trap of ours may stand, and its slot,
// in which the displaced instruction runs. Used by every provider whose probes stand on
// instructions. Several probes at one address share a tracepoint.
//
// A trap is an int3. Where use_jumps() allows it, and where it is proven that nobody can notice,
// it is a jump to a record of its own (vmm/shim/jump_record.h). The slot is there all the same, so
// that the jump can become an int3 at any time. A jump has no entry in the shim's table: an int3
// that appears inside such a jump is the guest's own kprobe.
//
// Writes: one byte of live text for each int3, five for each jump, and the old bytes back; nothing
// else.
// Threads: one at a time. These may run beside all others: drop_changed(), stands_in_function(),
// step_aside(), step_back(), has_displaced(), keep_in_place() and kprobe_table().
// Fire context: no.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "providers/tracepoint/probe_site.h"
#include "providers/tracepoint/tracepoint_types.h"
#include "vmm/base/address.h"
#include "vmm/base/guest_reader.h"
#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/text/kprobes.h"
#include "vmm/machine.h"
#include "vmm/shim/shim.h"

namespace ringside::providers {

class TracepointTable {
 public:
  /// All must outlive it. Nothing is asked of `shim` before the first add().
  TracepointTable(vmm::Machine& machine, vmm::Shim& shim, guest_linux::Kernel& kernel);
  ~TracepointTable();

  /// Whether an int3 may stand here; the error (Unsupported) is the reason, for -l -v.
  Result<ProbeSite> examine(GuestVirt address, SitePolicy policy = SitePolicy::Normal);
  /// Another number than before: sites that were examined before may have a kprobe by now.
  std::uint64_t generation() const;

  /// Makes the tracepoint, or gives it one more user: displaces the instruction, writes its slot.
  /// Nothing of the guest's text changes yet, and an int3 there is the guest's own until arm(). The
  /// same address gives the same id. Where the guest had changed its text (is_dropped), the site
  /// makes a new beginning, and users of before do not count any more.
  Result<TracepointId> add(const ProbeSite& site);
  Result<TracepointId> examine_and_add(GuestVirt at) { return add(TRY(examine(at))); }
  /// One user less. Without users it is not armed again, and disarm_unused() restores it.
  void release(GuestVirt address);
  /// Whether there is a tracepoint at `address` that the guest has changed its text under.
  bool is_dropped(GuestVirt address) const;
  /// Where the guest leaves its kernel for another one; empty for a kernel that cannot, and an
  /// error where no tracepoint can stand there. A tracepoint at this address also tells the shim
  /// that the guest leaves (Shim::kexec_notice), before its instruction runs and whoever listens.
  const Result<std::optional<GuestVirt>>& kexec_site() const;
  std::size_t size() const;
  /// Also one for each instruction that a jump has displaced, and one for where its record begins.
  std::span<const Slot> slots() const;

  /// Tracepoints in this text are gone, since the guest has loaded a module there. Those that were
  /// armed are returned by drop_changed().
  void drop_in(const guest_linux::Kernel::AddressRange& range);

  /// Reads again where the guest's own kprobes stand: before many sites are examined, for the guest
  /// goes on.
  void look_again();
  /// From now on arm() makes jumps where it can.
  void use_jumps(FindStanding find, IsInside is_inside);
  /// Makes the records of jumps that arm() may write. Before the pause.
  void prepare_jumps();
  /// Before arm(), in the same pause: whether it is known who stands where jumps are to be. If not,
  /// let the guest go on for a moment. Jumps over what is to be armed become int3s at once, so that
  /// nobody comes into their records any more; it is not known until all have left those.
  Result<void> find_standing(vmm::PausedMachine& machine);

  /// Whether the guest was stopped while it changes its text. Then what we read of it may be half
  /// of a change, and what it has read of it before would miss our int3s: let it go on for a
  /// moment.
  using Changes = guest_linux::KprobeTable::Changes;
  bool is_text_changing(vmm::PausedMachine& machine, Changes changes = Changes::OfText) const;
  /// The guest's list of kprobes, for a reader of the caller's own. It never changes: any thread.
  const guest_linux::KprobeTable& kprobe_table() const;
  /// Writes int3, or a jump, over every tracepoint that is used and not armed, in this one pause,
  /// and looks whether it is there then; not while is_text_changing(). Without find_standing() all
  /// are int3s. Those whose function is not what it
  /// was, or where a kprobe of the guest has come to stand, are dropped: drop_changed() returns
  /// them. When it fails, some may have been written: disarm() restores those.
  Result<void> arm(vmm::PausedMachine& machine);
  /// Restores every armed byte that still is ours, but for the one of searches_faults(). After it,
  /// a late trap resumes without firing.
  /// Those that could not be restored stay armed; all of them where the guest runs another kernel
  /// now (Shim::check_mapped).
  Result<void> disarm(vmm::PausedMachine& machine);
  /// Whether there is a breakpoint where the kernel looks up how to mend a fault (fault_search.h):
  /// it has to stay while somebody may be inside of a slot, since a page that is brought may take
  /// its time. Then disarm_fault_search() restores it.
  bool searches_faults() const;
  Result<void> disarm_fault_search(vmm::PausedMachine& machine);
  /// The same as disarm() for those without users; the others stay as they are.
  Result<void> disarm_unused(vmm::PausedMachine& machine);
  /// Takes those without users that are not armed out of the shim's table, so that an int3 there is
  /// the guest's own again. Once every trap that began before they were restored has its answer.
  void park_unused();
  /// The same with and without users, when tracing has ended: for a shim that has to stay. Traps
  /// that began before go on unfired.
  void park_restored();
  /// Whether an int3 or jump of ours may stand in the text, or be in a kprobe of the guest's own:
  /// then the guest cannot do without the shim.
  bool any_armed() const;
  /// Whether a kprobe of the guest's own has copied a jump of ours, which it runs from there.
  bool is_copied_by_kprobe() const;
  /// How many there are of these. On any thread.
  std::size_t armed() const;
  /// How many of those are jumps. On any thread.
  std::size_t jumps() const;

  /// Kernel text as it is without our breakpoints and without the guest's kprobes. Use it wherever
  /// text is read to find sites: an int3 in the way would put a sweep out of step.
  const GuestReader& original_text() const;

  bool is_armed(TracepointId id) const;

  /// Whether an int3 of ours stands in the function that `at` lies in.
  bool stands_in_function(GuestVirt at) const;
  /// The guest is about to read the function that `at` lies in, and would take our int3s for its
  /// code: restores them until step_back() or arm(). Late traps fire as ever. Whether there were
  /// any.
  Result<bool> step_aside(vmm::PausedMachine& machine, GuestVirt at);
  /// Arms again what step_aside() has restored; those where a kprobe of the guest has come to stand
  /// are dropped, as by arm(). False, and nothing is done, while the guest is changing its text.
  Result<bool> step_back(vmm::PausedMachine& machine);

  /// Whether a jump of ours has displaced the instruction at `at`, which does not run there.
  bool has_displaced(GuestVirt at) const;
  /// The guest has a hardware breakpoint at `at`: a jump that has displaced it becomes an int3, and
  /// none does from now on.
  Result<void> keep_in_place(vmm::PausedMachine& machine, GuestVirt at);

  /// Reads every armed byte again; those that the guest has changed (module unloaded, text
  /// patched) are dropped and returned, with those that arm() and disarm() found changed. At
  /// switchrate, on any thread; beside one that changes the table it leaves that for the next time.
  std::vector<GuestVirt> drop_changed();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ringside::providers
