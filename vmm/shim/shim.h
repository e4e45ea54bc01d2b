// The host's end of the shim: installs it in a guest, owns its table and slots, and serves its
// mailboxes. Layout: guest-shim/mailbox_abi.h. Everything read from the region is hostile: copied
// once, the copy validated, the copy used.
// There are two channels. Spin: the host polls all mailboxes all the time (poll). Exit: the shim
// writes the index of its mailbox to a port, which stops the vCPU, and the vCPU's own thread
// answers that mailbox (answer). The shim waits in the same way in both, so both may be used at
// once: whichever thread comes first answers. Does not: decode instructions, know probes, or decide
// where a tracepoint may stand. A guest can start another kernel without a reset (kexec). The
// region is then that kernel's RAM. So before each write the host checks whether the region is
// still the shim's, and never writes again once it is not (state()). A word that the guest may
// reach is written only if it has the value that the host wrote last (ShimRegion). A guest that
// starts another kernel passes a tracepoint (kexec_notice()); the answer to that trap is the last
// write.
//
// Fire context: poll(), answer(), heartbeat(), state(), waiting(), contains() and displaced_from()
// yes; everything else no. Threads: poll() and answer() on any, beside each other; heartbeat(),
// set_doorbell(), counters(), state() and waiting() on any; functions that add, enable or disable
// slots and entries on one thread at a time, also while the others run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "guest-shim/mailbox_abi.h"
#include "vmm/arch/arch.h"
#include "vmm/base/address.h"
#include "vmm/base/result.h"
#include "vmm/machine.h"
#include "vmm/page_walk.h"
#include "vmm/shim/shim_layout.h"
#include "vmm/shim/trap.h"

namespace ringside::vmm {

/// How a shim finds the current task, and what it tells of that.
struct ShimTaskFacts {
  std::int32_t current = 0;                   // per-cpu offset of the word that holds it, for %gs:
  std::uint32_t comm = 0, pid = 0, tgid = 0;  // offsets in struct task_struct
};

/// The facts about the kernel that the installer needs; vmm/linux finds them.
struct ShimKernelFacts {
  PageTable kernel_table;                          // init_top_pgt
  GuestVirt image_region_start, image_region_end;  // 0xffffffff80000000 and the modules' start
  GuestVirt image_end;                             // _end of the running kernel
  std::uint64_t this_cpu_off = 0;                  // per-cpu offset of this_cpu_off, for %gs:
  GuestVirt idt;                                   // symbol idt_table, which every CPU uses,
  GuestVirt idt_of_cpus;                           // at this address, in the user half too
  GuestVirt int3_handler;                          // symbol asm_exc_int3: what gate 3 must point to
  bool page_table_isolation = false;               // X86_FEATURE_PTI, from boot_cpu_data
  std::optional<ShimTaskFacts> task;               // empty: the shim tells nothing of tasks
};

struct ShimCounters {
  std::uint64_t firings = 0;   // int3s of ours that the shim saw
  std::uint64_t orphans = 0;   // resumed without the host: lost firings
  std::uint64_t late = 0;      // resumed unfired because the shim was not active
  std::uint64_t foreign = 0;   // kernel-mode int3s passed on to the kernel's own handler
  std::uint64_t rejected = 0;  // mailboxes that named no tracepoint of ours: answered, not fired
};

/// A snapshot of the mailboxes whose traps had begun and had no answer.
using TrapsUnderWay = std::vector<std::uint64_t>;

/// The state of a shim in the guest's memory.
enum class ShimState : std::uint8_t {
  There,
  GuestLeft,    // the guest has started another kernel
  Overwritten,  // something else is in the region
  Retired,      // by retire()
};

/// Every `count`-th mailbox, from `index` on.
struct PollShare {
  unsigned index = 0, count = 1;
};

class Shim {
 public:
  /// Puts the shim into `place`, as shim_layout.h says, and points IDT[3] at it. The machine's
  /// memory may be mapped here or not. Refuses (Unsupported), with the way out, a guest with FRED,
  /// with a gate that uses an IST, with no free PMDs, with user page tables that are not Linux's,
  /// or one that carries a shim already. Not active yet.
  static Result<std::unique_ptr<Shim>> install(PausedMachine& machine, GuestMemory::Extent place,
                                               const ShimKernelFacts& facts);
  virtual ~Shim() = default;

  /// Takes `size` bytes of slot space; returns their address in the guest. Limit when there is none
  /// left. Slot space is never reused while one tracer has the shim, nor is what somebody was
  /// inside of when it got it.
  virtual Result<GuestVirt> allocate_slot(std::size_t size) = 0;
  /// How many bytes are left for slots.
  virtual std::uint64_t slot_room() const { return 0; }
  /// Fills a slot; only before an entry leads to it.
  virtual Result<void> write_slot(GuestVirt slot, std::span<const std::byte> code) = 0;
  /// Adds an entry: once it is enabled, a trap at `address` resumes in `slot`. Until then an int3
  /// there is the guest's own. Other threads may poll and answer meanwhile. The address may have a
  /// disabled entry already, with the same slot or another one.
  virtual Result<void> add_entry(GuestVirt address, GuestVirt slot) = 0;
  /// From now on int3s at these addresses, which have entries, resume at their slots. In the pause
  /// in which they are written, before them.
  virtual Result<void> enable_entries(std::span<const GuestVirt> addresses) = 0;
  /// From now on an int3 at `address` goes to the guest's own handler. For code that the guest has
  /// changed, whose slot holds an old instruction. Others may poll and answer meanwhile.
  virtual void disable_entry(GuestVirt address) = 0;
  /// Call it after entries are enabled and before their int3s are written. A trap that began
  /// earlier and found its entry disabled then looks it up again.
  virtual void note_arming() = 0;

  /// The address that the record of a jump calls (vmm/shim/jump_record.h); empty before there is a
  /// shim.
  virtual std::optional<GuestVirt> jump_entry() const { return std::nullopt; }

  /// Code for the beginning of the slot at `slot`, before its instruction. It tells the host that
  /// the guest leaves its kernel, and lets all later traps resume at once. It changes no register
  /// and no flag. kKexecNoticeBytes long.
  virtual std::vector<std::byte> kexec_notice(GuestVirt slot) = 0;
  /// Code for the beginning of the slot at `slot`, for the function that searches the kernel's
  /// exception table. If the function's first argument is a slot of add_fault(), the code replaces
  /// it by the instruction's own address. It needs no host, and changes no other register and no
  /// flag. kFaultSearchBytes long.
  static constexpr std::size_t kKexecNoticeBytes = SHIM_KEXEC_NOTICE_BYTES,
                               kFaultSearchBytes = SHIM_FAULT_SEARCH_BYTES;
  virtual Result<std::vector<std::byte>> fault_search(GuestVirt slot) = 0;
  /// The instruction at `slot` may fault, and the kernel knows how to mend that at `place`.
  virtual Result<void> add_fault(GuestVirt slot, GuestVirt place) = 0;
  /// A state other than There is final; nothing is written to the region from then on.
  virtual ShimState state() const = 0;
  /// Invalid unless the guest runs the kernel that the shim was put into: its page tables lead to
  /// the shim. Asked of vCPU 0, through which text is written, and of all once there is doubt.
  virtual Result<void> check_mapped(PausedMachine& machine) const = 0;

  /// From now on traps wait for the host (heartbeat included); before, they resume unfired.
  virtual void activate() = 0;
  /// From now on traps resume at once, unfired and not counted as lost. Traps that began before
  /// still need an answer: poll() until quiescent().
  virtual void deactivate() = 0;
  /// Deactivates and gives IDT[3] back to the kernel, after every tracepoint is disarmed. If the
  /// guest has changed the gate meanwhile, or the gate is another kernel's, it is left alone
  /// (Invalid). Slots stay mapped, because a task may be inside one.
  virtual Result<void> retire(PausedMachine& machine) = 0;
  /// After retire(), once nobody in the guest is inside (vmm/linux/stacks/stack_check.h): takes it
  /// out of the guest's page tables and leaves zeros. Invalid where the guest has changed what led
  /// to it; then nothing is changed.
  virtual Result<void> remove(PausedMachine& machine) = 0;
  virtual ShimPlace place() const = 0;

  /// Serves every raised mailbox of a share once; returns how many. On several threads, one for
  /// each share.
  virtual unsigned poll_share(const TrapHandlers& handlers, PollShare share) = 0;
  /// The same for all mailboxes.
  unsigned poll(const TrapHandlers& handlers) { return poll_share(handlers, PollShare{}); }
  /// From now on traps ring at `port`; 0: they do not. Traps that rang before are not affected.
  virtual void set_doorbell(std::uint16_t port) = 0;
  /// Serves one mailbox if it is raised, on its vCPU's thread. A trap that has a watch is left to a
  /// thread that polls.
  /// `mailbox`: the guest wrote it to the port; may be any number.
  virtual void answer(std::uint32_t mailbox, const TrapHandlers& handlers) = 0;
  /// Tells the shim that the host lives; at least every 100 ms while tracepoints are armed.
  virtual void heartbeat() = 0;
  /// True when no mailbox is claimed: every trap that began has been answered.
  virtual bool quiescent() const = 0;
  /// The traps that need an answer now; of a paused guest, all that began before. Any thread.
  virtual TrapsUnderWay under_way() const = 0;
  /// Whether each of them has its answer or has gone on without one.
  virtual bool have_answers(const TrapsUnderWay& traps) const = 0;
  virtual ShimCounters counters() const = 0;
  /// Whether `pc` lies in the shim's region.
  virtual bool contains(GuestVirt pc) const = 0;
  /// The registers at the int3 of the CPU with this per-CPU base; empty unless it waits in the
  /// shim.
  virtual std::optional<Registers> waiting(GuestVirt percpu_base) const = 0;
  /// The tracepoint whose displaced instruction, or jump's record, `pc` is in; empty: it is in no
  /// slot of one.
  virtual std::optional<GuestVirt> displaced_from(GuestVirt pc) const = 0;
};

}  // namespace ringside::vmm
