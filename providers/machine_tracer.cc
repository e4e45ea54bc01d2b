#include "providers/machine_tracer.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "providers/fire/dispatch.h"
#include "providers/vm_provider.h"
#include "vmm/base/check.h"

namespace ringside::providers {

MachineTracer::MachineTracer(vmm::Machine& machine, Channel channel,
                             const std::optional<LinuxGuest>& inside)
    : machine_(machine),
      channel_(channel),
      vcpus_(std::max(1U, machine.vcpu_count())),
      sample_contexts_(machine.memory(), vcpus_, inside),
      event_contexts_(machine.memory(), vcpus_, inside),
      sampler_(machine, sample_contexts_),
      events_(event_contexts_) {
  if (vmm::VcpuExits* exits = machine.exits()) exits_.emplace(*exits);
  CHECK(channel != Channel::Auto && (exits_ || channel != Channel::Exit));
}

void MachineTracer::add_providers(Registry& registry, const TypeGraph* types) {
  registry.add(std::make_unique<VmProvider>(machine_.exits(),
                                            types != nullptr ? *types : standard_types_, events_));
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
    default: return "it is unknown";
  }
}

void MachineTracer::prepare(ProbeSink& sink, GuestClock& clock, FireLoopParts& parts) {
  sampler_.set_shim(parts.shim);
  parts.sampler = &sampler_;
  events_.seal(sink, clock);
  if (!exits_) return;
  if (events_.wants_any()) {
    exits_->set_events(&events_);
    parts.gates.push_back(&events_);
  }
  if (parts.timers->has_samples()) {
    sampler_.kick_by(exits_->exits(), sink, clock);
    exits_->set_samples(&sampler_);
    parts.gates.push_back(&sampler_);
  }
  if (channel_ == Channel::Exit && parts.shim != nullptr) {
    exits_->set_traps(parts.shim, parts.dispatcher);
    parts.traps_ring = true;
  }
}

Result<void> MachineTracer::open() {
  if (!exits_ || !exits_->is_needed()) return {};
  vmm::PausedMachine paused = TRY(vmm::PausedMachine::pause(machine_));
  open_ = true;  // even if it fails half-way
  exits_->open(paused);
  if (!events_.wants_any()) return {};
  return exits_->exits().want(paused, events_.wanted());
}

void MachineTracer::close() {
  if (!std::exchange(open_, false)) return;
  auto paused = vmm::PausedMachine::pause(machine_);
  if (!paused) return;
  // Nothing that was wanted can be missing now, so this cannot fail.
  if (events_.wants_any()) (void)exits_->exits().want(*paused, {});
  exits_->close(*paused);
}

std::optional<std::string> MachineTracer::take_losses() {
  const std::uint64_t lost = exits_ ? exits_->exits().lost_events() : 0;
  if (lost == losses_told_) return std::nullopt;
  const std::uint64_t more = lost - std::exchange(losses_told_, lost);
  return fmt::format("{} drop{}: too many events of the provider vm at once", more,
                     more == 1 ? "" : "s");
}

}  // namespace ringside::providers
