// The data that a firing brings to the evaluator: which probe, where and when, its arguments, and a
// way to look at the guest as it stands at that moment.
// Fire context: yes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "dif/program/action_kind.h"
#include "dif/program/probe_description.h"
#include "vmm/base/guest_reader.h"
#include "vmm/base/packet.h"

namespace ringside::dif {

/// Built-in variables that only the guest can answer. Read on demand, once per use.
enum class ContextVariable : std::uint8_t {
  Curthread,  // the address of current (struct task_struct *)
  Pid,        // current->tgid
  Tid,        // current->pid
  Ppid,       // current->real_parent->tgid
  Uid,        // current->cred->uid
  Gid,        // current->cred->gid
  Errno,      // the error of the system call that returns; 0 elsewhere
  Caller,     // return address of the probed function; 0 when unknown
  Ucaller,
  Stackdepth,
  Ustackdepth,
  Ipl,
  Vtimestamp,  // ns that current has run
  Born,        // ns since boot: current->start_time; tells apart those that have one tid in turn
};
inline constexpr std::size_t kContextVariables =
    static_cast<std::size_t>(ContextVariable::Born) + 1;

/// The facts that D asks about a lock of the guest's kernel.
enum class LockFact : std::uint8_t {
  Owner,     // of a mutex: its holder, an address as curthread's; 0 when it is free
  Adaptive,  // of a mutex: 1 when a waiter sleeps
  Spins,     // of a mutex: 1 when a waiter spins
  ReadHeld,  // of a reader/writer lock: 1 when readers hold it
  WriteHeld,
  HasWriter,  // held or wanted by a writer
};

/// Whose registers: regs[] or uregs[].
enum class RegisterSet : std::uint8_t { AtProbe, OfProcess };

/// The guest at the moment of a firing. Implementations read guest memory by copy; every answer
/// is hostile data.
class GuestContext {
 public:
  virtual ~GuestContext() = default;
  virtual Result<std::uint64_t, Fault> variable(ContextVariable which) const = 0;
  /// Copies current->comm into `out`; returns the length without NUL (at most out.size()).
  virtual Result<std::size_t, Fault> execname(std::span<char> out) const = 0;
  /// Argument n (0..9 as arg0..arg9 or args[]) of the probe that fires.
  virtual Result<std::uint64_t, Fault> argument(unsigned n) const = 0;
  virtual const GuestReader& kernel() const = 0;  // kernel addresses
  virtual const GuestReader& user() const = 0;    // user addresses, of the process that runs
  /// Whether a vCPU stands still for this firing; false where the host fires the probe.
  virtual bool is_on_vcpu() const { return false; }

  /// regs[n] and uregs[n], n as D numbers the registers of the guest's architecture. Fault: none
  /// has this number, or the firing does not have it.
  virtual Result<std::uint64_t, Fault> machine_register(RegisterSet set, std::uint64_t n) const {
    (void)set, (void)n;
    return tl::unexpected<Fault>(Fault{FaultKind::IllegalOperation, 0, 0});
  }
  /// Any number that tells the address space of the process that runs from others.
  virtual std::uint64_t address_space() const { return 0; }
  /// Fault: there is no memory where the lock should be.
  virtual Result<std::uint64_t, Fault> lock(LockFact which, GuestVirt at) const {
    (void)which;
    return tl::unexpected<Fault>(Fault{FaultKind::BadAddress, 0, at.raw()});
  }

  /// Writes the path name of a directory entry in a mount, as the kernel has them; answers with its
  /// length without NUL (at most out.size()). Fault: memory on the way that cannot be read, or
  /// nobody who knows the guest's kernel.
  virtual Result<std::size_t, Fault> path(GuestVirt dentry, GuestVirt mount,
                                          std::span<char> out) const {
    (void)dentry, (void)mount, (void)out;
    return tl::unexpected<Fault>(Fault{FaultKind::IllegalOperation, 0, 0});
  }

  /// Copies the network packet of a struct sk_buff, as much of it as fits. Fault: memory on the way
  /// that cannot be read, a structure that cannot be one, or nobody who knows the guest's kernel.
  virtual Result<CopiedPacket, Fault> packet(GuestVirt skb, PacketPart part,
                                             std::span<std::byte> out) const {
    (void)skb, (void)part, (void)out;
    return tl::unexpected<Fault>(Fault{FaultKind::IllegalOperation, 0, 0});
  }

  /// Code addresses from the innermost frame outward; how many were found, at most frames.size().
  /// A stack that cannot be followed further ends early; that is no fault.
  virtual Result<std::size_t, Fault> kernel_stack(std::span<std::uint64_t> frames) const {
    (void)frames;
    return 0;
  }
  virtual Result<std::size_t, Fault> user_stack(std::span<std::uint64_t> frames) const {
    (void)frames;
    return 0;
  }
  /// Whether current is `pid` or descends from it.
  virtual Result<bool, Fault> progeny_of(std::int64_t pid) const {
    (void)pid;
    return false;
  }
  /// Destructive. Writes the process's memory: all of `bytes` or nothing.
  virtual Result<void, Fault> write_user(GuestVirt at, std::span<const std::byte> bytes) const {
    (void)bytes;
    return tl::unexpected<Fault>(Fault{FaultKind::BadAddress, 0, at.raw()});
  }
  /// A destructive action that only the machine can do (stop(), raise(), breakpoint(), panic()),
  /// with its argument or 0. A Fault where the machine cannot.
  virtual Result<void, Fault> perform(ActionKind action, std::uint64_t argument) const {
    (void)action, (void)argument;
    return tl::unexpected<Fault>(Fault{FaultKind::IllegalOperation, 0, 0});
  }
  /// snapshot(): once this firing is over, its vCPU does not go on before the consumer has seen the
  /// record. Nothing to do where the host fires. A Fault where no machine can be kept.
  virtual Result<void, Fault> keep_still() const {
    return tl::unexpected<Fault>(Fault{FaultKind::IllegalOperation, 0, 0});
  }
  /// chill(): holds the vCPU, which stands still during the firing, for this many ns; the engine
  /// limits it to 500 ms.
  virtual Result<void, Fault> wait(std::uint64_t nanoseconds) const;
};

struct FireRecord {
  std::uint32_t vcpu = 0;
  std::uint64_t timestamp = 0;     // ns: the guest's TSC at the trap
  std::int64_t walltimestamp = 0;  // ns since the epoch
};

/// The context of a firing where there is no guest: process and user are the tracer's own (as
/// dtrace's BEGIN shows dtrace itself), execname is "ringside", other numbers are 0, reads fault.
/// BEGIN, END and tick on the `none` machine.
const GuestContext& no_guest_context();

}  // namespace ringside::dif
