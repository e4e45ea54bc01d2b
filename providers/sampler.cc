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
  const Where where = locate(registers, vcpu);
  Registers seen = registers;
  if (shim_ != nullptr && shim_->contains(GuestVirt(registers.rip))) {
    if (const auto interrupted = shim_->waiting(where.percpu_base)) seen = *interrupted;
  }
  context_.begin(seen, where.percpu_base);
  context_.select_sample(moment.late);
  sink.fire(probe, {where.cpu, moment.time, moment.wall}, context_);
}

VcpuSampler::Where VcpuSampler::locate(const Registers& registers, unsigned vcpu) const {
  // Which of the two holds the kernel's base depends on swapgs, not on the mode alone.
  for (const std::uint64_t base : {registers.gs_base, registers.kernel_gs_base}) {
    const auto cpu = kernel_.cpu_of(GuestVirt(base));
    if (cpu && *cpu < machine_.vcpu_count()) return {*cpu, GuestVirt(base)};
  }
  const auto bases = kernel_.percpu_bases();
  return {vcpu, GuestVirt(vcpu < bases.size() ? bases[vcpu] : 0)};
}

}  // namespace ringside::providers
