#include "providers/fire/dispatch.h"

#include <memory>
#include <utility>

#include "dif/engine/fire_context.h"
#include "disasm/decoder.h"
#include "providers/fire/host_clock.h"

namespace ringside::providers {

TrapDispatcher::TrapDispatcher(const guest_linux::Kernel& kernel, LinuxContext& context,
                               unsigned vcpus)
    : kernel_(kernel),
      context_(context),
      vcpus_(vcpus),
      tables_(std::make_unique<const DispatchTable>()) {}

std::vector<GuestVirt> TrapDispatcher::remove(std::span<const dif::ProbeId> probes) {
  next_.removed.insert(next_.removed.end(), probes.begin(), probes.end());
  return tables_.current().places_of(probes);
}

std::vector<GuestVirt> TrapDispatcher::abandon() {
  std::vector<GuestVirt> places;
  for (const DispatchTable::Lead& lead : next_.added) places.push_back(lead.at);
  next_ = {};
  return places;
}

void TrapDispatcher::publish() {
  auto table = std::make_unique<const DispatchTable>(tables_.current(), next_);
  next_ = {};
  tables_.publish(std::move(table));
}

void TrapDispatcher::begin(ProbeSink& sink, GuestClock& clock) {
  sink_ = &sink;
  clock_ = &clock;
  publish();
}

void TrapDispatcher::on_trap(const vmm::Trap& trap) {
  const dif::FireScope scope;
  const auto table = tables_.pin();
  const Place* const place = place_of(*table, trap);
  if (place == nullptr) return;
  const auto cpu = kernel_.cpu_of(trap.percpu_base);
  if (!cpu || *cpu >= vcpus_) {
    ++counters_.unknown_cpu;
    return;
  }
  serve(*table, *place, trap, *cpu);
}

void TrapDispatcher::on_stop(const vmm::Trap& trap, std::uint32_t cpu) {
  const dif::FireScope scope;
  const auto table = tables_.pin();
  if (const Place* const place = place_of(*table, trap)) serve(*table, *place, trap, cpu);
}

/// Counts the trap if it fires nothing.
const DispatchTable::Place* TrapDispatcher::place_of(const DispatchTable& table,
                                                     const vmm::Trap& trap) {
  if (!is_open()) {
    ++counters_.closed;
    return nullptr;
  }
  const Place* const place = table.find(trap.address);
  if (place == nullptr) ++counters_.no_point;
  return place;
}

void TrapDispatcher::serve(const DispatchTable& table, const Place& place, const vmm::Trap& trap,
                           std::uint32_t cpu) {
  const std::uint64_t tsc = host_tsc();
  const std::uint64_t time = clock_->trap_time(trap.tsc, tsc);
  context_.begin(trap.registers, trap.percpu_base);
  const dif::FireRecord record{cpu, time, clock_->wall_of_host(tsc)};
  for (const Binding& binding : table.bindings(place)) fire(binding, record);
  if (place.by_number >= 0) fire_by_number(table, place, record);
}

void TrapDispatcher::fire(const Binding& binding, const dif::FireRecord& record) {
  const bool conditional = binding.condition != 0xff;
  if (conditional && !disasm::condition_holds(binding.condition, context_.registers()->rflags)) {
    return;
  }
  context_.select(binding);
  sink_->fire(binding.probe, record, context_);
}

void TrapDispatcher::fire_by_number(const DispatchTable& table, const Place& place,
                                    const dif::FireRecord& record) {
  context_.select(table.shared(place));
  const auto number = context_.system_call_number();
  const auto probe = number ? table.probe_of(place, *number) : std::nullopt;
  if (probe) sink_->fire(*probe, record, context_);
}

}  // namespace ringside::providers
