#include "providers/fire/exit_channel.h"

namespace ringside::providers {

void ExitChannel::open(vmm::PausedMachine& machine) {
  exits_.set_sink(machine, this);
  if (shim_ != nullptr) shim_->set_doorbell(vmm::VcpuExits::kDoorbellPort);
}

void ExitChannel::close(vmm::PausedMachine& machine) {
  // Those that rang and were not heard wait in their mailboxes, where the fire thread finds them.
  if (shim_ != nullptr) shim_->set_doorbell(0);
  exits_.set_sink(machine, nullptr);
}

void ExitChannel::on_doorbell(vmm::StoppedVcpu&, std::uint32_t value) {
  if (shim_ != nullptr) shim_->answer(value, *traps_);
}

void ExitChannel::on_breakpoint(vmm::StoppedVcpu& vcpu, GuestVirt address) {
  if (breakpoints_ != nullptr) breakpoints_->on_breakpoint(vcpu, address);
}

void ExitChannel::on_event(vmm::StoppedVcpu& vcpu, const vmm::VcpuEvent& event) {
  if (events_ != nullptr && events_->wants(event)) events_->on_event(vcpu, event);
}

void ExitChannel::on_sample(vmm::StoppedVcpu& vcpu, std::uint64_t tag) {
  if (samples_ != nullptr) samples_->on_sample(vcpu, tag);
}

}  // namespace ringside::providers
