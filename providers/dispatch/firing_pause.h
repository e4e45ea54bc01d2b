// Pauses the machine after a firing with an action that reads the whole machine: snapshot(). The
// firing asks for the pause under its firing lock. After it, and before the vCPU that fired goes
// on, the machine is paused. The session's thread then prints the record, for which it reads the
// machine, and lets the machine go on. So nothing waits for the session under a firing lock, or on
// a thread that others need:
//   - A thread that polls or samples pauses the machine, leaves the pause here and goes on.
//   - A vCPU's own thread, which never pauses, waits outside the guest, and the session pauses.
// Used by what fires on vCPUs (ProbeSink's keep() and settle()) and by the session.
// Threads: ask() under a firing lock, settle() after it, on any thread; the others on the
// session's. Fire context: ask() yes; everything else no.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <vector>

#include "vmm/base/brief_lock.h"
#include "vmm/base/unique_fd.h"
#include "vmm/machine.h"
#include "vmm/shim/mailboxes.h"

namespace ringside::providers {

/// A vCPU as it was when it fired.
struct FiringVcpu {
  std::optional<unsigned> vcpu;  // its number in the machine; empty: the one of this per-CPU base
  GuestVirt percpu_base;
  Registers registers;
};

class FiringPause {
 public:
  /// `cpus`: the number of firing locks. For a vCPU that waits in `shim`, the registers are those
  /// at its trap; `shim` may be null. All must outlive it.
  FiringPause(vmm::Machine& machine, unsigned cpus, const vmm::Mailboxes* shim);
  /// After end(), where a vCPU's own thread may wait. Pauses that are left are over.
  ~FiringPause() = default;
  FiringPause(const FiringPause&) = delete;
  FiringPause& operator=(const FiringPause&) = delete;

  /// The firing on this CPU wants it.
  void ask(std::uint32_t cpu, const FiringVcpu& kept);
  /// With no firing lock held: does what was asked for, if anything was.
  void settle(std::uint32_t cpu);
  /// Lives around an exit's handling, on a vCPU's thread: settle() leaves the wait to its end.
  class VcpuThread {
   public:
    VcpuThread();
    ~VcpuThread();
    /// Whether such a one lives on this thread.
    static bool is_this();
    VcpuThread(const VcpuThread&) = delete;
    VcpuThread& operator=(const VcpuThread&) = delete;
  };

  /// Readable while somebody waits for the session.
  int event_fd() const { return event_.get(); }
  /// Whether somebody waits; what release() takes. Before the records are taken. 0: nobody.
  std::uint64_t take_asked();
  /// Lets those go on that had asked before.
  void release(std::uint64_t asked);
  /// From now on nobody is kept.
  void end();
  /// The registers of all vCPUs: of those that fired, and of those that wait to fire, as they were
  /// at the probe.
  Result<std::vector<Registers>> registers(vmm::PausedMachine& paused) const;

 private:
  struct Slot {
    std::uint64_t ticket = 0;  // 0: nothing is asked for
    FiringVcpu kept;
  };
  struct Pause {
    std::uint64_t ticket;
    vmm::PausedMachine machine;
  };
  std::uint64_t ticket_of(std::uint32_t cpu) const;
  std::optional<Registers> at_probe(unsigned vcpu, const Registers& now) const;
  bool is_over(std::uint64_t ticket) const { return ended_ || ticket <= released_; }
  void wait(std::uint64_t ticket);
  void pause(std::uint64_t ticket);

  vmm::Machine& machine_;
  const vmm::Mailboxes* const shim_;
  const UniqueFd event_;

  mutable BriefLock slots_lock_;  // for what follows
  std::vector<Slot> slots_;       // by CPU
  std::uint64_t last_ticket_ = 0;

  std::mutex mutex_;  // for what follows
  std::condition_variable released_more_;
  std::uint64_t released_ = 0;
  bool ended_ = false;
  std::list<Pause> pauses_;
};

}  // namespace ringside::providers
