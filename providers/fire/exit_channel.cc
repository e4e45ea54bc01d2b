#include "providers/fire/exit_channel.h"

#include "providers/dispatch/firing_pause.h"

namespace ringside::providers {

void ExitChannel::open(vmm::PausedMachine& machine) {
  exits_.set_sink(machine, this);
  if (routes_.traps) routes_.traps->shim.set_doorbell(vmm::VcpuExits::kDoorbellPort);
}

void ExitChannel::close(vmm::PausedMachine& machine) {
  // Those that rang and were not heard wait in their mailboxes, where the fire thread finds them.
  if (routes_.traps) routes_.traps->shim.set_doorbell(0);
  exits_.set_sink(machine, nullptr);
}

void ExitChannel::on_doorbell(vmm::StoppedVcpu&, std::uint32_t value) {
  const FiringPause::VcpuThread handling;
  if (routes_.traps) routes_.traps->shim.answer(value, routes_.traps->handlers);
}

void ExitChannel::on_breakpoint(vmm::StoppedVcpu& vcpu, GuestVirt address) {
  const FiringPause::VcpuThread handling;
  if (routes_.breakpoints) routes_.breakpoints(vcpu, address);
}

void ExitChannel::on_event(vmm::StoppedVcpu& vcpu, const vmm::VcpuEvent& event) {
  if (routes_.events == nullptr || !routes_.events->wants(event)) return;
  const FiringPause::VcpuThread handling;
  routes_.events->on_event(vcpu, event);
}

void ExitChannel::on_sample(vmm::StoppedVcpu& vcpu, std::uint64_t tag) {
  const FiringPause::VcpuThread handling;
  if (routes_.samples != nullptr) routes_.samples->on_sample(vcpu, tag);
}

}  // namespace ringside::providers
