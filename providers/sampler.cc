#include "providers/sampler.h"

#include "providers/host_clock.h"

namespace ringside::providers {

void VcpuSampler::sample(dif::ProbeId probe, std::uint64_t late, ProbeSink& sink,
                         GuestClock& clock) {
  if (gave_up_) return;
  const std::uint64_t before = host_tsc();
  const Moment moment{late, clock.host_time(before), clock.wall_of_host(before)};
  {
    auto paused = vmm::PausedMachine::pause(machine_);
    if (!paused) {
      gave_up_ = true;  // the session sees the machine's end by its state
      return;
    }
    for (unsigned vcpu = 0; vcpu < paused->vcpu_count(); ++vcpu) {
      const auto registers = paused->registers(vcpu);
      if (registers) fire(probe, sink, *registers, vcpu, moment);
    }
  }
  clock.paused_between(before, host_tsc());
}

void VcpuSampler::fire(dif::ProbeId probe, ProbeSink& sink, const Registers& registers,
                       unsigned vcpu, const Moment& moment) {
  const CpuPlace place = context_.locate(registers, vcpu);
  Registers seen = registers;
  if (shim_ != nullptr && shim_->contains(GuestVirt(registers.rip))) {
    if (const auto interrupted = shim_->waiting(place.percpu_base)) seen = *interrupted;
  }
  const bool user = seen.in_user_mode();
  context_.begin(seen, place, {user ? 0 : seen.rip, user ? seen.rip : 0, moment.late});
  sink.fire(probe, {place.cpu, moment.time, moment.wall}, context_);
}

}  // namespace ringside::providers
