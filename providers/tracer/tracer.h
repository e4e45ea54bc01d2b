// The tracer: all providers over one machine (or none), and the fire thread. It promises that no
// probe fires before its enabling is announced or after it is gone.
//
// Its life:
//   attach()
//   for_each_probe(), arguments()   while programs are compiled
//   enable()                        for each probe of the program
//   start(engine)                   BEGIN fires, one pause arms all probes, firings are served
//   stop()                          nothing fires any more, END fires, text is restored
//
// A session with several tracers takes the last two in steps (begin(), arm(); halt(), stop()). So
// every BEGIN is before, and every END after, what fires on any machine.
//
// Threads: all calls come from the session's thread. Firings happen on the tracer's own threads,
// and on those of vCPUs that run in this process, on several vCPUs at once (dif/engine/engine.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dif/engine/engine.h"
#include "dif/evaluate/guest_context.h"
#include "dif/program/stability.h"
#include "providers/budget/budget.h"
#include "providers/clock/host_clock.h"
#include "providers/dispatch/firing_pause.h"
#include "providers/fire/channel.h"
#include "providers/provider.h"
#include "providers/tracer/trace_statistics.h"
#include "providers/trap_points/trap_point_table.h"
#include "vmm/linux/discovery/file_kernel.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/processes/host_files.h"
#include "vmm/machine.h"

namespace ringside::providers {

struct DefinedProbes;

struct TracerOptions {
  Channel channel = Channel::Auto;
  /// Threads that look at mailboxes on the channel spin; at most kMostPollThreads.
  unsigned poll_threads = 1;
  TrapForm traps = TrapForm::Breakpoints;
  Recording recording = Recording::No;
  RecordFull record_full = RecordFull::Wait;
  /// The kernel of a machine of our own that is held before its first instruction, to trace it from
  /// there. start() lets the machine begin once BEGIN has fired and the probes stand. Takes the
  /// place of `kernel`.
  guest_linux::FileKernel* held = nullptr;
  /// The machine was saved and never runs: BEGIN, END and ERROR fire, and read what it holds.
  bool saved = false;
  /// The probes that D libraries define; null: none.
  std::shared_ptr<const DefinedProbes> defined = nullptr;
  /// A stub that an earlier tracer left is an error when it cannot be taken out, and is not used
  /// again.
  bool only_to_clean = false;
  /// Where symbols of the guest's programs are looked for besides its memory; null: nowhere.
  std::shared_ptr<guest_linux::HostFiles> host_files = nullptr;
  /// Shared by tracers whose times are compared; null: one of its own.
  std::shared_ptr<TscCalibration> calibration = nullptr;
};

class Tracer {
 public:
  /// `machine` and `kernel` are both null for the machine `none`; they must outlive the tracer.
  /// Only `kernel` is null if no Linux is known in the machine: then there are only the providers
  /// dtrace, profile (pc and vCPU, no processes) and vm. Unsupported when the machine has no such
  /// channel.
  static Result<std::unique_ptr<Tracer>> attach(vmm::Machine* machine, guest_linux::Kernel* kernel,
                                                const TracerOptions& options = {});
  virtual ~Tracer() = default;

  /// Visits every published probe that matches, in the order of ids.
  virtual Result<void> for_each_probe(const dif::ProbeDescription& pattern,
                                      const std::function<void(const Probe&)>& visit) = 0;
  /// Visits what matches but cannot be probed, with the reason. Computed when asked.
  virtual Result<void> refusals(const dif::ProbeDescription& pattern,
                                const std::function<void(const Refusal&)>& visit) = 0;
  /// Visits the places that matching probes should stand on, too, and cannot, with the reason: what
  /// happens there is not counted.
  virtual void gaps(const dif::ProbeDescription& pattern,
                    const std::function<void(const Refusal&)>& visit) {
    (void)pattern, (void)visit;
  }
  /// Empty when no published probe has this id.
  virtual Result<std::optional<Probe>> probe_by_id(dif::ProbeId id) = 0;
  /// Unknown for a probe that was not published. Types are in the kernel's graph.
  virtual ProbeArguments arguments(const Probe& probe) = 0;
  /// One line on what the probe stands on; empty where there is none to say.
  virtual std::string detail(const Probe& probe) {
    (void)probe;
    return {};
  }
  /// Its provider's promise of the probe.
  virtual dif::ProviderAttributes attributes(const Probe& probe) = 0;
  /// Whether there is a provider of exactly this name, with or without probes.
  virtual bool has_provider(std::string_view name) = 0;
  /// So many probes will be enabled: call it before the first one is.
  virtual void expect_probes(std::size_t count) { (void)count; }
  /// Before start(). NotFound, Unsupported with the reason, or Limit: see Provider::enable().
  virtual Result<void> enable(const Probe& probe) = 0;
  /// Enables more probes between start() and stop(), while others fire. When it returns, all of
  /// these fire; after an error none of them fires, except those that fired before. A timer that is
  /// added begins then. The engine must know their clauses before start(). Unsupported for what can
  /// only be enabled before that: BEGIN, the first probe of a running kernel's code, all of a
  /// kernel's that is traced from its first instruction.
  virtual Result<void> add_probes(std::span<const Probe> probes) = 0;
  /// Call it before begin() if modules that the guest loads later shall have probes. Then, on the
  /// session's thread: modules_fd() is readable while a module waits to be taken (-1: none ever
  /// does). for_each_probe_in() visits the module's probes, add_probes() enables them, and let_go()
  /// lets the guest run the module's init. `added` is the number of new probes, for a notice.
  using LateModule = guest_linux::Kernel::LateModule;
  virtual void expect_modules() {}
  virtual int modules_fd() const { return -1; }
  virtual std::optional<LateModule> take_module() { return std::nullopt; }
  virtual Result<void> for_each_probe_in(const LateModule& module,
                                         const dif::ProbeDescription& pattern,
                                         const std::function<void(const Probe&)>& visit) {
    (void)module, (void)pattern, (void)visit;
    return {};
  }
  virtual void let_go(const LateModule& module, const Result<std::size_t>& added) {
    (void)module, (void)added;
  }
  /// From time to time while tracing, on the session's thread: probes of all processes get places
  /// in files that came later, with a notice.
  virtual void follow_files() {}
  /// When it returns these fire no more, and what they stood on is as it was. With an error (but
  /// Unsupported) breakpoints may be left that fire nothing, or the machine goes on telling events
  /// that do.
  virtual Result<void> remove_probes(std::span<const Probe> probes) = 0;

  /// Why a program with this destructive action cannot run on this machine; empty when it can.
  /// Asked before start(), so that it is no surprise at the first firing.
  virtual std::optional<std::string> cannot(dif::ActionKind action) = 0;

  /// vCPUs that per-vCPU buffers are needed for; at least 1.
  virtual unsigned vcpu_count() const = 0;

  /// The channel that traps take; not Auto.
  virtual Channel channel() const { return Channel::Spin; }

  /// Before arm(): traps are kept to this, of a kernel that runs. Probes that are too much are
  /// taken out, for the rest of the trace, and a notice says which. Without it they have no limit.
  virtual void keep_to(const Budget& budget) { (void)budget; }
  /// Fires BEGIN; nothing else fires yet. `engine` must outlive stop(). Once.
  virtual Result<void> begin(dif::Engine& engine) = 0;
  /// After begin(), unless BEGIN has called exit(): the probes stand when it returns.
  virtual Result<void> arm() = 0;
  Result<void> start(dif::Engine& engine) {
    TRY(begin(engine));
    return arm();
  }
  /// After begin(): from now on nothing fires but END, which stop() does.
  virtual void halt() = 0;
  /// Idempotent; also when the machine is gone.
  virtual void stop() = 0;

  /// snapshot(): the machine may stand still while the records are printed. Null without a machine,
  /// and before begin().
  virtual FiringPause* firing_pause() { return nullptr; }

  /// Why nothing of the guest can be traced any more, though the machine runs on: its kernel is
  /// gone, or has panicked. For ever; empty while all is well.
  virtual std::optional<std::string> loss() const { return std::nullopt; }
  /// KernelTracer's.
  virtual std::optional<std::string> must_leave() const { return std::nullopt; }
  virtual int leave_fd() const { return -1; }
  /// After stop(): whether breakpoints of ours had to stay in a guest that lives on.
  virtual bool has_left_breakpoints() const { return false; }

  /// From begin() on, also after stop().
  virtual TraceStatistics statistics() const = 0;
  /// Firings that the shim had to let pass since start because we did not answer in time.
  std::uint64_t lost_firings() const { return statistics().kernel.misses; }
  /// How the guest's TSC is led to the host's time, and how wrong that is at most, in one line for
  /// the user.
  virtual std::string clock() const { return {}; }
  /// The probes that fired last, the very last one first; kept only where vCPUs run on threads of
  /// this process. After stop().
  virtual std::vector<dif::ProbeId> last_firings() const { return {}; }
  /// One-line notices since the last call ("the guest changed ... ; its probe is gone").
  virtual std::vector<std::string> take_notices() = 0;
};

}  // namespace ringside::providers
