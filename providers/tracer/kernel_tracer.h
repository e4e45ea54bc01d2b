// The part of the tracer that knows the kernel in the machine: the probes on its text, and what
// must be done to the guest at start and stop. There are two kinds. running_kernel_tracer.h traces
// a Linux that runs, with a shim inside it. boot_tracer.h traces a kernel that is held before its
// first instruction, by breakpoints. Each kind has two objects, and each object is complete when it
// is made. The tracer exists from the beginning and publishes probes. begin() makes the trace,
// which fires and exists while tracing runs. The machine's trace and the fire loop are made from
// its traps().
// Used by the tracer (tracer.cc) alone. Threads: the session's, unless said otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dif/verify/record_needs.h"
#include "providers/clock/guest_clock.h"
#include "providers/context/host_context.h"
#include "providers/context/vcpu_context.h"
#include "providers/dispatch/dispatch.h"
#include "providers/dispatch/probe_sink.h"
#include "providers/fire/exit_channel.h"
#include "providers/fire/poller.h"
#include "providers/fire/replay.h"
#include "providers/registry.h"
#include "providers/tracer/trace_statistics.h"

namespace ringside::providers {

/// A kernel's trace offers these to the others that fire. They belong to the trace.
struct KernelTraps {
  HostView view;
  LinuxGuest inside;                // for what fires on its vCPUs at no instruction of ours
  std::optional<ShimTraps> shim{};  // none: nothing of it traps by a shim
  Replay* replay = nullptr;         // null: none of them is recorded
  bool expects_waits = true;        // FireLoopParts::expects_waits
  BreakpointHandler breakpoints{};  // empty: there are none without guest code
  std::vector<FireGate*> gates{};   // open while its probes fire
  std::function<bool()> upkeep{};   // FireLoopParts::upkeep
};

class KernelTrace {
 public:
  virtual ~KernelTrace() = default;
  virtual KernelTraps traps() = 0;
  /// Why not all of its traps can be recorded; empty: they are, or nobody has asked for it.
  virtual std::optional<std::string> recording_obstacle() const { return std::nullopt; }

  /// From here on the probes that were enabled fire, while their gates are open. After an error
  /// some may stand: disarm() restores them.
  virtual Result<void> arm() = 0;
  /// Arms the probes that providers have enabled since arm(). When it returns, they fire. After an
  /// error none of them fires, as after abandon_added(). Probes that fire already are not
  /// interrupted.
  virtual Result<void> arm_added() = 0;
  virtual void abandon_added() = 0;

  /// For KernelTracer::expect_modules(): readable while take_module() has a module to take; -1: it
  /// never has.
  virtual int modules_fd() const { return -1; }
  /// The next module that the guest is loading; the kernel and the table of trap points know it
  /// from now on. A vCPU stands still until let_go(). A module that cannot be read is let go at
  /// once, with a notice.
  virtual std::optional<guest_linux::Kernel::LateModule> take_module() { return std::nullopt; }
  /// False when the vCPU has gone on before.
  virtual bool let_go(const guest_linux::Kernel::LateModule& module) {
    (void)module;
    return false;
  }
  /// When it returns these fire no more; the others go on all the time.
  virtual Result<void> remove(std::span<const dif::ProbeId> probes) = 0;
  /// Restores the text, in one pause; a machine that is gone needs nothing. Idempotent.
  virtual void disarm() = 0;
  /// On any thread.
  virtual KernelStatistics statistics() const = 0;
  /// The dispatcher that it fires by, where remove() of probes spares the guest their traps; else
  /// null.
  virtual const TrapDispatcher* limited() const { return nullptr; }
};

class KernelTracer {
 public:
  virtual ~KernelTracer() = default;

  /// The providers of this kernel, in the order of their ids.
  virtual void add_providers(Registry& registry) = 0;
  /// Adds the providers that reserve an id for every byte of the text. They must come after all
  /// others.
  virtual void add_wide_providers(Registry& registry) { (void)registry; }
  /// The guest kernel's own idea of the TSC's rate, where it has one by now.
  virtual std::optional<std::uint32_t> tsc_khz() const = 0;
  /// How many CPUs it may have one day, those that are plugged in among them; 0: nobody knows yet.
  virtual unsigned possible_cpus() const { return 0; }
  /// Call it before begin() if modules that the guest loads later shall have probes.
  virtual void expect_modules() {}
  /// So many probes will be enabled: call it before the first one is.
  virtual void expect_probes(std::size_t count) { (void)count; }
  /// Before probes are looked up: the guest may have changed its text since the last time.
  virtual void look_again() {}

  /// The wishes of the program.
  struct Wants {
    bool stacks = false;  // a firing may follow the kernel's stack
    /// The needs of a probe's clauses (Engine); empty: all traps wait.
    std::function<dif::RecordNeeds(dif::ProbeId, dif::EntryArguments)> record_needs{};
    bool full_rings_wait = true;  // a trap that finds its ring full waits, and is not dropped
  };
  /// Firings go to `sink` and get their time from `clock`. Both, and this, must outlive the trace.
  /// Once.
  virtual std::unique_ptr<KernelTrace> begin(ProbeSink& sink, GuestClock& clock,
                                             const Wants& wants) = 0;
  /// After the fire thread has ended, and the trace is disarmed: gives the guest back what else was
  /// taken of it.
  virtual void retire() {}

  /// Why nothing can be traced any more, though the machine runs on; empty while all is well.
  virtual std::optional<std::string> loss() const { return std::nullopt; }
  /// Why the guest must be left now, which waits for that; empty as a rule. leave_fd() is readable
  /// then (-1: it never is).
  virtual std::optional<std::string> must_leave() const { return std::nullopt; }
  virtual int leave_fd() const { return -1; }
  /// After the end: whether breakpoints of ours had to stay in a guest that lives on.
  virtual bool has_left_breakpoints() const { return false; }
  /// One line each, since the last call.
  virtual std::vector<std::string> take_notices() = 0;
};

}  // namespace ringside::providers
