// Everything that exists only while tracing runs: the sink of firings, their clock, the kernel's
// and the machine's part, the fire thread, and the budget enforcer.
// Used by the tracer (tracer.cc), which arms and ends them. Threads: the session's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "dif/engine/engine.h"
#include "providers/budget/budget_enforcer.h"
#include "providers/clock/guest_clock.h"
#include "providers/dispatch/engine_sink.h"
#include "providers/dispatch/firing_pause.h"
#include "providers/fire/fire_loop.h"
#include "providers/tracer/kernel_tracer.h"
#include "providers/tracer/machine_tracer.h"
#include "vmm/machine.h"

namespace ringside::providers {

/// All that is pointed at outlives the trace.
struct TraceSources {
  dif::Engine& engine;
  vmm::Machine* machine;          // null for the machine `none`
  KernelTracer* kernel;           // null where no kernel is known
  MachineTracer* machine_tracer;  // null for the machine `none`, and a saved one
  HostView saved;                 // of a saved guest
  unsigned vcpus;
  std::uint64_t host_hertz;
  std::optional<dif::ProbeId> begin, end;  // empty: not enabled
  std::vector<EnabledTimer> timers;
  unsigned poll_threads;
  bool records;  // traps whose programs allow it
  RecordFull record_full;
  unsigned max_slow;  // percent, for samples
};

class Trace {
 public:
  explicit Trace(const TraceSources& from);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  const EngineSink& sink() const { return sink_; }
  EngineSink& sink() { return sink_; }
  const GuestClock& clock() const { return clock_; }
  KernelTrace* kernel() const { return kernel_.get(); }                // null where none is known
  FiringPause* firing_pause() { return pause_ ? &*pause_ : nullptr; }  // null without a machine
  MachineTrace* machine() const { return machine_.get(); }             // null without a machine
  FireLoop* loop() const { return loop_.get(); }                       // null after end_loop()
  BudgetEnforcer* enforcer() const { return enforcer_.get(); }         // null without a budget

  void enforce(const Budget& budget, BudgetEnforcerParts parts) {
    enforcer_ = std::make_unique<BudgetEnforcer>(budget, std::move(parts));
  }
  /// After FireLoop::finish().
  void end_loop() { loop_.reset(); }

 private:
  std::unique_ptr<KernelTrace> begin_kernel(const TraceSources& from);
  std::vector<FireGate*> gates() const;
  bool expects_waits() const { return !traps_ || traps_->expects_waits; }
  std::uint64_t longest_rest(const TraceSources& from) const;

  // Each works on those above it.
  EngineSink sink_;
  GuestClock clock_;
  const std::unique_ptr<KernelTrace> kernel_;
  std::optional<KernelTraps> traps_;  // the kernel's
  std::optional<FiringPause> pause_;
  const std::unique_ptr<MachineTrace> machine_;
  std::unique_ptr<FireLoop> loop_;
  std::unique_ptr<BudgetEnforcer> enforcer_;
};

}  // namespace ringside::providers
