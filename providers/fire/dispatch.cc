#include "providers/fire/dispatch.h"

#include <algorithm>

#include "dif/engine/fire_context.h"
#include "disasm/decoder.h"
#include "providers/fire/host_clock.h"
#include "vmm/base/check.h"

namespace ringside::providers {

TrapDispatcher::TrapDispatcher(const TracepointFinder& finder, const guest_linux::Kernel& kernel,
                               LinuxContext& context, unsigned vcpus)
    : finder_(finder), kernel_(kernel), context_(context), vcpus_(vcpus) {}

void TrapDispatcher::add(TracepointId point, const Binding& binding) {
  collected_.push_back({point, binding});
}

void TrapDispatcher::seal(ProbeSink& sink, GuestClock& clock) {
  sink_ = &sink;
  clock_ = &clock;
  // Stable: bindings of one place stay in the order of enabling.
  std::stable_sort(collected_.begin(), collected_.end(),
                   [](const Collected& a, const Collected& b) { return a.point < b.point; });
  for (const auto& [point, binding] : collected_) {
    if (places_.size() <= point.value) places_.resize(point.value + 1);
    Place& place = places_[point.value];
    if (binding.number != kNoNumber) {
      place_number(place, binding);
      continue;
    }
    if (place.count == 0) place.first = static_cast<std::uint32_t>(bindings_.size());
    ++place.count;
    bindings_.push_back(binding);
  }
  collected_.clear();
  collected_.shrink_to_fit();
}

void TrapDispatcher::place_number(Place& place, const Binding& binding) {
  CHECK(binding.number < kSyscallNumbers);
  if (place.by_number < 0) {
    place.by_number = static_cast<std::int32_t>(number_tables_.size());
    number_tables_.push_back({binding.regs_register, {}});
  }
  number_tables_[static_cast<std::size_t>(place.by_number)].probes[binding.number] = binding.probe;
}

void TrapDispatcher::on_trap(const vmm::Trap& trap) {
  const dif::FireScope scope;
  const auto point = point_of(trap);
  if (!point) return;
  const auto cpu = kernel_.cpu_of(trap.percpu_base);
  if (!cpu || *cpu >= vcpus_) {
    ++counters_.unknown_cpu;
    return;
  }
  serve(*point, trap, *cpu);
}

void TrapDispatcher::on_stop(const vmm::Trap& trap, std::uint32_t cpu) {
  const dif::FireScope scope;
  if (const auto point = point_of(trap)) serve(*point, trap, cpu);
}

/// Counts the trap if it fires nothing.
std::optional<TracepointId> TrapDispatcher::point_of(const vmm::Trap& trap) {
  if (!is_open()) {
    ++counters_.closed;
    return std::nullopt;
  }
  const auto point = finder_.armed_at(trap.address);
  if (point && point->value < places_.size()) return point;
  ++counters_.no_point;
  return std::nullopt;
}

void TrapDispatcher::serve(TracepointId point, const vmm::Trap& trap, std::uint32_t cpu) {
  const std::uint64_t tsc = host_tsc();
  const std::uint64_t time = clock_->trap_time(trap.tsc, tsc);
  context_.begin(trap.registers, trap.percpu_base);
  const dif::FireRecord record{cpu, time, clock_->wall_of_host(tsc)};
  const Place place = places_[point.value];
  for (std::uint32_t n = 0; n < place.count; ++n) fire(bindings_[place.first + n], record);
  if (place.by_number >= 0) {
    fire_by_number(number_tables_[static_cast<std::size_t>(place.by_number)], record);
  }
}

void TrapDispatcher::fire(const Binding& binding, const dif::FireRecord& record) {
  const bool conditional = binding.condition != 0xff;
  if (conditional && !disasm::condition_holds(binding.condition, context_.registers()->rflags)) {
    return;
  }
  context_.select(binding);
  sink_->fire(binding.probe, record, context_);
}

void TrapDispatcher::fire_by_number(const NumberTable& table, const dif::FireRecord& record) {
  const auto number = context_.syscall_number(table.regs_register);
  if (!number || *number >= kSyscallNumbers) return;
  const dif::ProbeId probe = table.probes[*number];
  if (probe.value == 0) return;
  Binding binding;
  binding.probe = probe;
  binding.kind = BindingKind::SyscallReturn;
  binding.number = *number;
  context_.select(binding);
  sink_->fire(probe, record, context_);
}

}  // namespace ringside::providers
