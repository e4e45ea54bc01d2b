// In this file, top to bottom: the tracer, the trace.
#include "providers/tracer/machine_tracer.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "vmm/base/check.h"

namespace ringside::providers {
namespace {

using Wanted = vmm::VcpuExits::Wanted;

std::optional<LinuxGuest> inside(const std::optional<KernelTraps>& kernel) {
  if (!kernel) return std::nullopt;
  return std::optional<LinuxGuest>(std::in_place, kernel->inside);
}

bool is_any(const Wanted& wanted) {
  return std::ranges::find(wanted.kinds, true) != wanted.kinds.end();
}

Wanted both(Wanted wanted, const Wanted& more) {
  for (std::size_t kind = 0; kind < wanted.kinds.size(); ++kind) {
    wanted.kinds[kind] |= more.kinds[kind];
  }
  return wanted;
}

VmProvider* publish_vm(vmm::Machine& machine, Registry& registry, const TypeGraph& types) {
  auto made = std::make_unique<VmProvider>(machine.exits(), types);
  VmProvider* const vm = made.get();
  registry.add(std::move(made));
  return vm;
}

unsigned vcpus_of(const vmm::Machine& machine) {
  return std::max(1U, machine.vcpu_count());
}

}  // namespace

MachineTracer::MachineTracer(vmm::Machine& machine, Channel channel, Registry& registry,
                             const TypeGraph* types)
    : machine_(machine),
      channel_(channel),
      vcpus_(vcpus_of(machine)),
      vm_(publish_vm(machine, registry, types != nullptr ? *types : standard_types_)) {
  CHECK(channel != Channel::Auto && (has_exits() || channel != Channel::Exit));
}

std::optional<std::string> MachineTracer::cannot(dif::ActionKind action) const {
  using dif::ActionKind;
  switch (action) {
    case ActionKind::Breakpoint:
      return "a guest that stands still for a debugger can be of no use to it: ringside itself "
             "holds the machine's debug port";
    case ActionKind::Panic:
      return "the guest cannot be made to panic from outside without harm to it";
    case ActionKind::Stop:
    case ActionKind::Raise: return "signals to the guest's processes cannot be sent from outside";
    case ActionKind::Snapshot: return std::nullopt;
    default: return "it is unknown";
  }
}

std::unique_ptr<MachineTrace> MachineTracer::begin(ProbeSink& sink, GuestClock& clock,
                                                   const std::optional<KernelTraps>& kernel) {
  return std::make_unique<MachineTrace>(machine_, channel_, sink, clock, kernel, enabled_events());
}

std::optional<std::string> MachineTracer::take_losses() {
  const std::uint64_t lost = has_exits() ? machine_.exits()->lost_events() : 0;
  if (lost == losses_told_) return std::nullopt;
  const std::uint64_t more = lost - std::exchange(losses_told_, lost);
  return fmt::format("{} drop{}: too many events of the provider vm at once", more,
                     more == 1 ? "" : "s");
}

MachineTrace::MachineTrace(vmm::Machine& machine, Channel channel, ProbeSink& sink,
                           GuestClock& clock, const std::optional<KernelTraps>& kernel,
                           const EventTable& first)
    : machine_(machine),
      exits_(machine.exits()),
      traps_ring_(channel == Channel::Exit && kernel && kernel->shim),
      has_breakpoints_(kernel && kernel->breakpoints),
      sample_contexts_(machine.memory(), vcpus_of(machine), inside(kernel)),
      event_contexts_(machine.memory(), vcpus_of(machine), inside(kernel)),
      sampler_(machine, sample_contexts_, sink, clock,
               kernel && kernel->shim ? &kernel->shim->shim : nullptr, exits_),
      events_(event_contexts_, sink, clock, VmProvider::plans(), first) {
  if (exits_ == nullptr) return;
  ExitRoutes routes{.events = &events_, .samples = &sampler_};
  if (traps_ring_) routes.traps.emplace(*kernel->shim);
  if (has_breakpoints_) routes.breakpoints = kernel->breakpoints;
  channel_.emplace(*exits_, routes);
}

Result<void> MachineTrace::want(vmm::PausedMachine& machine, const Wanted& wanted) {
  if (wanted.kinds == wanted_.kinds) return {};
  TRY(exits_->want(machine, wanted));
  wanted_ = wanted;
  return {};
}

Result<void> MachineTrace::listen(const EventSubscription& wants) {
  if (!channel_) return {};
  const Wanted wanted = both(wanted_, wants.events.wanted());
  const bool needed = traps_ring_ || has_breakpoints_ || wants.samples || is_any(wanted);
  if (!needed || (open_ && wanted.kinds == wanted_.kinds)) return {};
  vmm::PausedMachine paused = TRY(vmm::PausedMachine::pause(machine_));
  if (!std::exchange(open_, true)) channel_->open(paused);
  return want(paused, wanted);
}

Result<void> MachineTrace::stop_listening() {
  const Wanted wanted = events_.table().wanted();
  if (!open_ || wanted.kinds == wanted_.kinds) return {};
  vmm::PausedMachine paused = TRY(vmm::PausedMachine::pause(machine_));
  return want(paused, wanted);
}

void MachineTrace::close() {
  if (!std::exchange(open_, false)) return;
  auto paused = vmm::PausedMachine::pause(machine_);
  if (!paused) return;
  // Nothing that was wanted can be missing now, so this cannot fail.
  (void)want(*paused, {});
  channel_->close(*paused);
}

}  // namespace ringside::providers
