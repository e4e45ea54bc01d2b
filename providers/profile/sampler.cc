#include "providers/profile/sampler.h"

#include <algorithm>
#include <mutex>
#include <span>

#include "dif/engine/fire_context.h"
#include "providers/clock/host_clock.h"
#include "providers/dispatch/firing_pause.h"
#include "providers/profile/before_shim.h"

namespace ringside::providers {

VcpuSampler::VcpuSampler(vmm::Machine& machine, VcpuContexts& contexts, ProbeSink& sink,
                         GuestClock& clock, const vmm::Mailboxes* shim, vmm::VcpuExits* exits)
    : machine_(machine),
      contexts_(contexts),
      sink_(sink),
      clock_(clock),
      shim_(shim),
      exits_(exits),
      answered_(machine.vcpu_count()) {}

void VcpuSampler::sample(const EnabledTimer& timer, std::uint64_t late) {
  if (exits_ != nullptr) return kick(timer, late);
  const std::uint64_t begun = monotonic_ns();
  if (gave_up_ || !pace_.may_begin(begun, late, timer.interval)) return;
  pause_and_fire(timer, late);
  pace_.ended(begun, monotonic_ns());
}

void VcpuSampler::pause_and_fire(const EnabledTimer& timer, std::uint64_t late) {
  const std::uint64_t before = host_tsc();
  const Moment moment{late, clock_.host_time(before), clock_.wall_of_host(before)};
  auto paused = vmm::PausedMachine::pause(machine_);
  if (!paused) {
    // The session sees the machine's end by its state. A guest that sleeps has nothing to sample.
    gave_up_ = paused.error().code == ErrorCode::MachineGone;
    return;
  }
  // Those that there were when it began: one that is plugged in later has no place to fire in.
  const auto vcpus = std::min<std::size_t>(answered_.size(), paused->vcpu_count());
  for (unsigned vcpu = 0; vcpu < vcpus; ++vcpu) {
    const auto registers = paused->registers(vcpu);
    if (!registers) continue;
    const Seen seen = look_at(*registers, vcpu);
    {
      const std::lock_guard lock(sink_.firing_lock(seen.place.cpu));
      fire(timer, seen, moment);
    }
    sink_.settle(seen.place.cpu);
  }
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

void VcpuSampler::forget(std::span<const dif::ProbeId> probes) {
  {
    const std::lock_guard forgetting(asked_lock_);
    for (Asked& asked : asked_) {
      if (std::ranges::find(probes, asked.timer.probe) != probes.end()) asked = {};
    }
  }
  sink_.wait_for_firings();
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
    if (asked.timer.probe.value == 0 || asked_again(asked.timer.probe, one, tag)) continue;
    due.asked[due.count++] = asked;
  }
  return due;
}

/// The lock is taken before the look at what is due: a probe that is forgotten fires no more once
/// each lock was free.
void VcpuSampler::on_sample(vmm::StoppedVcpu& vcpu, std::uint64_t tag) {
  const unsigned index = vcpu.index();
  if (index >= answered_.size()) return;
  const Seen seen = look_at(vcpu.registers(), index);
  fire_due(vcpu, seen, tag);
  sink_.settle(seen.place.cpu);
}

void VcpuSampler::fire_due(vmm::StoppedVcpu& vcpu, const Seen& seen, std::uint64_t tag) {
  const dif::FireScope scope;
  const std::lock_guard lock(sink_.firing_lock(seen.place.cpu));
  if (!open_.load(std::memory_order_acquire)) return;
  const Due due = take_due(vcpu.index(), tag);
  for (const Asked& asked : std::span(due.asked).first(due.count)) {
    const std::uint64_t tsc = host_tsc();
    const std::uint64_t waited = tsc > asked.host_tsc ? tsc - asked.host_tsc : 0;
    const Moment moment{asked.late + clock_.rate().nanoseconds(waited),
                        clock_.trap_time(vcpu.guest_tsc(), tsc), clock_.wall_of_host(tsc)};
    fire(asked.timer, seen, moment);
  }
}

VcpuSampler::Seen VcpuSampler::look_at(const Registers& registers, unsigned vcpu) const {
  Seen seen{registers, contexts_.locate(registers, vcpu), vcpu};
  seen.is_offline = contexts_.is_offline(seen.place.cpu, registers);
  if (is_in_shim(registers)) {
    if (const auto interrupted = shim_->waiting(seen.place.percpu_base)) {
      seen.registers = *interrupted;
    }
  }
  return seen;
}

void VcpuSampler::fire(const EnabledTimer& timer, const Seen& seen, const Moment& moment) {
  if (seen.is_offline) return;
  VcpuContext& context = contexts_[seen.place.cpu];
  context.begin(seen.registers, seen.place, *timer.plan, {moment.late});
  if (is_in_shim(seen.registers)) {
    const auto before = before_shim(seen.registers, *shim_, context.kernel());
    if (before) context.begin(*before, seen.place, *timer.plan, {moment.late});
  }
  sink_.fire(timer.probe, {seen.place.cpu, moment.time, moment.wall}, context);
  if (context.keeps_still()) {
    sink_.keep(seen.place.cpu, {seen.vcpu, seen.place.percpu_base, seen.registers});
  }
}

}  // namespace ringside::providers
