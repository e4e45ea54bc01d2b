// The part of the tracer that exists for every machine, with or without Linux in it: samples of its
// vCPUs, the exit channel, and the provider `vm`. Probes on a kernel's text are in kernel_tracer.h.
// There are two objects, as kernel_tracer.h explains. Used by the tracer (tracer.cc) alone.
// Threads: the session's.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "providers/context/vcpu_context.h"
#include "providers/fire/channel.h"
#include "providers/fire/exit_channel.h"
#include "providers/profile/sampler.h"
#include "providers/registry.h"
#include "providers/tracer/kernel_tracer.h"
#include "providers/vm/vm_dispatch.h"
#include "providers/vm/vm_provider.h"
#include "vmm/machine.h"

namespace ringside::providers {

/// A machine is to tell these while tracing runs.
struct EventSubscription {
  EventTable events;
  bool samples = false;
};

class MachineTrace {
 public:
  /// Firings go to `sink` and get their time from `clock`. `kernel` has nothing where no Linux is
  /// known. `first` is what fires first. All but `first` must outlive it.
  MachineTrace(vmm::Machine& machine, Channel channel, ProbeSink& sink, GuestClock& clock,
               const std::optional<KernelTraps>& kernel, const EventTable& first);
  MachineTrace(const MachineTrace&) = delete;
  MachineTrace& operator=(const MachineTrace&) = delete;

  VcpuSampler& sampler() { return sampler_; }
  /// The gates of everything that fires here.
  std::vector<FireGate*> gates() { return {&events_, &sampler_}; }
  /// Whether vCPUs' own threads answer the traps of the shim.
  bool traps_ring() const { return traps_ring_; }

  /// From now on the machine reports these events as well. Takes one pause if any of them is new.
  /// It does not change which probes fire.
  Result<void> listen(const EventSubscription& wants);
  /// From now on just these events fire. When it returns no firing of another one is under way.
  void set_events(const EventTable& table) { events_.set_events(table); }
  /// The machine need not tell events any more that do not fire.
  Result<void> stop_listening();
  /// The machine tells nothing any more. Idempotent; a machine that is gone needs nothing.
  void close();

 private:
  Result<void> want(vmm::PausedMachine& machine, const vmm::VcpuExits::Wanted& wanted);

  vmm::Machine& machine_;
  vmm::VcpuExits* const exits_;  // null where the vCPUs run in another process
  const bool traps_ring_, has_breakpoints_;
  VcpuContexts sample_contexts_, event_contexts_;
  VcpuSampler sampler_;
  VmDispatcher events_;
  std::optional<ExitChannel> channel_;  // with exits_
  vmm::VcpuExits::Wanted wanted_;       // as the machine was asked for
  bool open_ = false;
};

class MachineTracer {
 public:
  /// Publishes the provider `vm` in `registry`; types of its args[] are looked up in `types`, or
  /// where it is null among those that every TypeGraph begins with, under the same ids. `channel`
  /// is not Auto, and Exit only where machine.exits() is there. All must outlive this.
  MachineTracer(vmm::Machine& machine, Channel channel, Registry& registry, const TypeGraph* types);
  MachineTracer(const MachineTracer&) = delete;
  MachineTracer& operator=(const MachineTracer&) = delete;

  /// Why the machine cannot do this; empty when it can.
  std::optional<std::string> cannot(dif::ActionKind action) const;
  unsigned vcpu_count() const { return vcpus_; }
  Channel channel() const { return channel_; }
  /// Whether vCPUs run on threads of this process.
  bool has_exits() const { return machine_.exits() != nullptr; }
  /// The events that are enabled now.
  EventTable enabled_events() const { return vm_->enabled(); }

  /// Parameters as MachineTrace has them. This must outlive the trace.
  std::unique_ptr<MachineTrace> begin(ProbeSink& sink, GuestClock& clock,
                                      const std::optional<KernelTraps>& kernel);
  /// A line when events were lost since the last call.
  std::optional<std::string> take_losses();

 private:
  vmm::Machine& machine_;
  const Channel channel_;
  const unsigned vcpus_;
  const TypeGraph standard_types_;
  VmProvider* const vm_;  // the registry's
  std::uint64_t losses_told_ = 0;
};

}  // namespace ringside::providers
