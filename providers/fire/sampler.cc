#include "providers/fire/sampler.h"

#include <algorithm>
#include <mutex>
#include <span>

#include "dif/engine/fire_context.h"
#include "providers/fire/host_clock.h"

namespace ringside::providers {

void VcpuSampler::kick_by(vmm::VcpuExits& exits, ProbeSink& sink, GuestClock& clock) {
  exits_ = &exits;
  sink_ = &sink;
  clock_ = &clock;
  answered_.assign(machine_.vcpu_count(), 0);
}

void VcpuSampler::sample(const EnabledTimer& timer, std::uint64_t late, ProbeSink& sink,
                         GuestClock& clock) {
  if (exits_ != nullptr) return kick(timer, late);
  if (gave_up_) return;
  const std::uint64_t before = host_tsc();
  const Moment moment{late, clock.host_time(before), clock.wall_of_host(before)};
  {
    auto paused = vmm::PausedMachine::pause(machine_);
    if (!paused) {
      // The session sees the machine's end by its state. A guest that sleeps has nothing to sample.
      gave_up_ = paused.error().code == ErrorCode::MachineGone;
      return;
    }
    for (unsigned vcpu = 0; vcpu < paused->vcpu_count(); ++vcpu) {
      const auto registers = paused->registers(vcpu);
      if (registers) fire(timer, sink, *registers, vcpu, moment);
    }
  }
  clock.paused_between(before, host_tsc());
}

void VcpuSampler::kick(const EnabledTimer& timer, std::uint64_t late) {
  std::uint64_t tag = 0;
  {
    const std::lock_guard asking(asked_lock_);
    tag = ++last_;
    asked_[tag % kKept] = {timer, late, host_tsc()};
  }
  exits_->sample(tag);
}

/// Whether the same probe was asked for once more: then the later one is the sample.
bool VcpuSampler::asked_again(dif::ProbeId probe, std::uint64_t after, std::uint64_t last) const {
  for (std::uint64_t tag = after + 1; tag <= last; ++tag) {
    if (asked_[tag % kKept].timer.probe == probe) return true;
  }
  return false;
}

VcpuSampler::Due VcpuSampler::take_due(unsigned vcpu, std::uint64_t tag) {
  Due due;
  const std::lock_guard looking(asked_lock_);
  if (tag > last_) return due;
  const std::uint64_t oldest = last_ < kKept ? 1 : last_ - kKept + 1;
  const std::uint64_t first = std::max(answered_[vcpu] + 1, oldest);
  answered_[vcpu] = std::max(answered_[vcpu], tag);
  for (std::uint64_t one = first; one <= tag; ++one) {
    const Asked& asked = asked_[one % kKept];
    if (!asked_again(asked.timer.probe, one, tag)) due.asked[due.count++] = asked;
  }
  return due;
}

void VcpuSampler::on_sample(vmm::StoppedVcpu& vcpu, std::uint64_t tag) {
  const dif::FireScope scope;
  const unsigned index = vcpu.index();
  if (!open_.load(std::memory_order_acquire) || index >= answered_.size()) return;
  const Due due = take_due(index, tag);
  for (const Asked& asked : std::span(due.asked).first(due.count)) {
    const std::uint64_t tsc = host_tsc();
    const std::uint64_t waited = tsc > asked.host_tsc ? tsc - asked.host_tsc : 0;
    const Moment moment{asked.late + clock_->rate().nanoseconds(waited),
                        clock_->trap_time(vcpu.guest_tsc(), tsc), clock_->wall_of_host(tsc)};
    fire(asked.timer, *sink_, vcpu.registers(), index, moment);
  }
}

void VcpuSampler::fire(const EnabledTimer& timer, ProbeSink& sink, const Registers& registers,
                       unsigned vcpu, const Moment& moment) {
  const CpuPlace place = contexts_.locate(registers, vcpu);
  Registers seen = registers;
  if (shim_ != nullptr && shim_->contains(GuestVirt(registers.rip))) {
    if (const auto interrupted = shim_->waiting(place.percpu_base)) seen = *interrupted;
  }
  const std::lock_guard turn(sink.turn(place.cpu));
  if (exits_ != nullptr && !open_.load(std::memory_order_acquire)) return;
  VcpuContext& context = contexts_[place.cpu];
  context.begin(seen, place, *timer.plan, {moment.late});
  sink.fire(timer.probe, {place.cpu, moment.time, moment.wall}, context);
}

}  // namespace ringside::providers
