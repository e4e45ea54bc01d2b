// A machine: a virtual machine that we can see into and whose code we can change. It has four
// parts, each with an interface of its own: guest memory (vmm/guest_memory.h), vCPUs (Vcpus), code
// writing (vmm/code_writer.h), and the guest's state (MachineStatus). A part may come from another
// back end than the next one. "No guest" is a null pointer at higher levels.
// How to add a back end: implement the parts, and a Machine that hands them out; nothing above vmm
// may know which back end it is. Launchers start machines, each with a configuration of its own
// (vmm/guest_config.h); nothing of that is here.
// Threads: every function may be called from any thread. Pauses nest, in one thread or several: the
// guest runs again when the last PausedMachine is gone.
// Fire context: memory() yes; all else no.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "vmm/arch/arch.h"
#include "vmm/arch/x86_64/registers.h"
#include "vmm/base/address.h"
#include "vmm/base/result.h"
#include "vmm/code_writer.h"
#include "vmm/guest_memory.h"
#include "vmm/page_walk.h"
#include "vmm/stop_times.h"

namespace ringside::vmm {

class VcpuExits;

enum class MachineState : std::uint8_t {
  Running,
  PoweredOff,  // the guest ended by its own wish
  Rebooted,    // the guest reset itself
  Panicked,    // the guest's kernel panicked
  Died,        // the process that ran the machine is gone, or the machine could not go on
};

/// Whether the guest runs or how it ended, with words for the user.
class MachineStatus {
 public:
  virtual ~MachineStatus() = default;
  /// Does not block. A state other than Running is final.
  virtual MachineState state() const = 0;
  /// A descriptor that is readable when state() may have changed; -1 when the machine has none. The
  /// machine keeps it.
  virtual int event_fd() const = 0;
  /// The last lines of the guest's console, for messages.
  virtual std::string console_tail() const = 0;
  /// Why a machine Died, in one line: how its process ended, with that process's own last line.
  /// Empty in other states, and where nothing is known.
  virtual std::string exit_reason() const { return {}; }
  /// Whether it Died because it no longer answered and we ended it: the error of that moment says
  /// so.
  virtual bool was_ended_by_us() const { return false; }
  /// exit_reason() and, in further lines, the state of the vCPU that died, where it is known.
  virtual std::string exit_report() const { return {}; }
  /// The owner's actions on a machine that is not ours since the last call, a line each: it was
  /// paused, it goes on.
  virtual std::vector<std::string> take_news() { return {}; }
  /// Why we have to turn away from a machine that is still Running, at once: it moves elsewhere.
  virtual std::optional<std::string> must_leave() const { return std::nullopt; }
};

/// The vCPUs, which can be counted, stopped and looked at. Only PausedMachine stops them and reads
/// their registers.
class Vcpus {
 public:
  virtual ~Vcpus() = default;
  virtual unsigned count() const = 0;
  /// Lets vCPUs begin that the launcher holds before their first instruction (KvmConfig::hold).
  /// Otherwise it does nothing.
  virtual void release() {}
  /// Called before each stop, in the thread that wants to pause. An error refuses the stop, and the
  /// pause returns that error. For machines whose stop waits for more than their vCPUs (by a
  /// monitor).
  using StopCheck = std::function<Result<void>()>;
  virtual void set_stop_check(const StopCheck&) {}
  /// From now on a pause stops no vCPU, and each vCPU's registers are of another moment. False, and
  /// nothing changes, if code is to be written or if a stop waits only for vCPUs.
  virtual bool look_while_they_run() { return false; }

 protected:
  friend class PausedMachine;
  /// Returns once every vCPU stands still.
  virtual Result<void> pause() = 0;
  virtual Result<void> resume() = 0;
  /// While paused. `vcpu` counts from 0.
  virtual Result<Registers> registers(unsigned vcpu) = 0;
};

class Machine {
 public:
  virtual ~Machine() = default;

  /// The back end, for messages: "qemu (TCG)", "qemu (KVM)", "kvm".
  virtual std::string_view kind() const = 0;
  /// Whether somebody else started it, and may end it: that its process is gone is no failure then.
  virtual bool is_others() const { return false; }
  /// The host's process that runs the guest; 0 where there is none.
  virtual pid_t host_process() const { return 0; }
  // The parts live as long as the machine.
  virtual GuestMemory& memory() = 0;
  virtual Vcpus& vcpus() = 0;
  const Vcpus& vcpus() const { return const_cast<Machine*>(this)->vcpus(); }
  virtual CodeWriter& code() = 0;
  virtual MachineStatus& status() = 0;
  const MachineStatus& status() const { return const_cast<Machine*>(this)->status(); }
  /// The exits of a machine whose vCPUs run in this process; null for any other.
  virtual VcpuExits* exits() { return nullptr; }
  /// RAM that was set aside for the shim and that the guest leaves alone; empty when none was.
  virtual std::optional<GuestMemory::Extent> reserved_memory() const { return std::nullopt; }
  /// Takes it away again, where it came while the guest ran and nothing of ours is left in it.
  virtual Result<void> give_back_reserved() { return {}; }
  /// How somebody gets more of it than there is; "" when there is no way.
  virtual std::string_view more_room() const {
    return reserved_memory() ? "" : "for more room start the kernel with memmap=16M$0x6000000";
  }
  /// Ends the guest and everything that was started for it. A guest that is to be kept runs on, and
  /// the machine lets go of it. May be called again; a pause in another thread fails.
  virtual void shut_down() = 0;

  /// When its guest may have stood still. PausedMachine tells of our pauses; a back end whose guest
  /// has another owner, of theirs.
  StopTimes& stops() { return stops_; }
  const StopTimes& stops() const { return stops_; }

  // Shorthands.
  unsigned vcpu_count() const { return vcpus().count(); }
  MachineState state() const { return status().state(); }

 private:
  StopTimes stops_;
};

/// While one lives, no vCPU of the machine executes guest code. Functions that change guest text
/// or page tables, or that read registers, take one, so the compiler checks that rule.
class PausedMachine {
 public:
  /// Waits until every vCPU stands still. `machine` must outlive the pause. MachineGone when the
  /// guest has ended, or a back end's own error.
  static Result<PausedMachine> pause(Machine& machine);
  PausedMachine(PausedMachine&& other) noexcept
      : machine_(std::exchange(other.machine_, nullptr)) {}
  PausedMachine& operator=(PausedMachine&&) = delete;
  /// Resumes; a failure to do so is visible as MachineStatus::state() afterwards.
  ~PausedMachine();

  GuestMemory& memory() { return machine_->memory(); }
  pid_t host_process() const { return machine_->host_process(); }
  /// `vcpu` counts from 0; NotFound when there is none of that number.
  Result<Registers> registers(unsigned vcpu) { return machine_->vcpus().registers(vcpu); }
  unsigned vcpu_count() const { return machine_->vcpu_count(); }
  /// Writes code that the guest may have executed before. All writes are tried; the error names the
  /// first address that was refused.
  Result<void> write_code(std::span<const CodeWrite> writes) {
    return machine_->code().write(writes);
  }
  /// Zeros where code was that may have run: no translation of it is left, so that other code may
  /// be written there through memory(). Io when it is not all RAM.
  Result<void> clear_code(GuestPhys at, std::uint64_t size);
  /// The same by virtual addresses, through `table`. An address that it does not map is skipped,
  /// and the error (Invalid) names it; the others are written.
  Result<void> write_code(const PageTable& table, std::span<const VirtualCodeWrite> writes);

 private:
  explicit PausedMachine(Machine* machine) : machine_(machine) {}
  Machine* machine_;
};

/// Does `work` in the pause that `pause` takes. The guest's owner may let the guest run meanwhile.
/// Then the pause is over, `work` has written nothing and returns NotFound, and both are tried
/// again, a number of times.
template <class Pause, class Work>
std::invoke_result_t<Work&, PausedMachine&> in_whole_pause(Pause pause, Work work) {
  constexpr unsigned kMostTries = 50;
  for (unsigned tries = 1;; ++tries) {
    PausedMachine paused = TRY(pause());
    auto done = work(paused);
    if (done || done.error().code != ErrorCode::NotFound || tries == kMostTries) return done;
  }
}

}  // namespace ringside::vmm
