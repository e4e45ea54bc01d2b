#include "providers/vm/vm_dispatch.h"

#include <algorithm>
#include <mutex>

#include "dif/engine/fire_context.h"
#include "providers/clock/host_clock.h"
#include "providers/dispatch/firing_pause.h"

namespace ringside::providers {
namespace {

using Kind = vmm::VcpuEvent::Kind;

static_assert(std::tuple_size_v<decltype(vmm::VcpuEvent::values)> == VmDispatcher::kReasonFact);
static_assert(static_cast<std::size_t>(Kind::Dirty) + 1 == vmm::VcpuEvent::kKinds);

std::size_t index_of(Kind kind) {
  return static_cast<std::size_t>(kind);
}

}  // namespace

vmm::VcpuExits::Wanted EventTable::wanted() const {
  vmm::VcpuExits::Wanted wanted;
  for (std::size_t kind = 0; kind < by_kind.size(); ++kind) {
    wanted.kinds[kind] = by_kind[kind].value != 0;
  }
  wanted.kinds[index_of(Kind::Exit)] |=
      std::ranges::any_of(by_reason, [](dif::ProbeId probe) { return probe.value != 0; });
  return wanted;
}

VmDispatcher::VmDispatcher(VcpuContexts& contexts, ProbeSink& sink, GuestClock& clock,
                           const EventPlans& plans, const EventTable& first)
    : contexts_(contexts), sink_(sink), clock_(clock), plans_(plans), table_(first) {
  store(first);
}

void VmDispatcher::store(const EventTable& table) {
  table_ = table;
  for (std::size_t n = 0; n < by_kind_.size(); ++n) {
    by_kind_[n].store(table.by_kind[n], std::memory_order_relaxed);
  }
  for (std::size_t n = 0; n < by_reason_.size(); ++n) {
    by_reason_[n].store(table.by_reason[n], std::memory_order_relaxed);
  }
}

/// Firings that begin after the wait see the new words: their locks are taken and given up in
/// order.
void VmDispatcher::set_events(const EventTable& table) {
  if (table == table_) return;
  store(table);
  sink_.wait_for_firings();
}

dif::ProbeId VmDispatcher::probe_of(const vmm::VcpuEvent& event) const {
  const std::size_t kind = index_of(event.kind);
  if (kind >= by_kind_.size()) return kNone;
  const bool by_reason = event.kind == Kind::Exit && event.reason < by_reason_.size();
  return (by_reason ? by_reason_[event.reason] : by_kind_[kind]).load(std::memory_order_relaxed);
}

void VmDispatcher::on_event(vmm::StoppedVcpu& vcpu, const vmm::VcpuEvent& event) {
  if (vcpu.index() >= contexts_.size()) return;
  if (fire(vcpu, event) == AfterFiring::StandStill) sink_.settle(vcpu.index());
}

VmDispatcher::AfterFiring VmDispatcher::fire(vmm::StoppedVcpu& vcpu, const vmm::VcpuEvent& event) {
  const dif::FireScope scope;
  const std::uint32_t index = vcpu.index();
  HostFacts facts;
  std::ranges::copy(event.values, facts.begin());
  facts[kReasonFact] = event.reason;
  const std::uint64_t tsc = host_tsc();
  const std::uint64_t time = clock_.trap_time(vcpu.guest_tsc(), tsc);
  const std::lock_guard lock(sink_.firing_lock(index));
  if (!open_.load(std::memory_order_acquire)) return AfterFiring::Resume;
  const dif::ProbeId probe = probe_of(event);
  if (probe == kNone) return AfterFiring::Resume;
  VcpuContext& context = contexts_[index];
  context.begin(vcpu, plans_[index_of(event.kind)], facts);
  sink_.fire(probe, {index, time, clock_.wall_of_host(tsc)}, context);
  if (!context.keeps_still()) return AfterFiring::Resume;
  sink_.keep(index, {index, GuestVirt(0), vcpu.registers()});
  return AfterFiring::StandStill;
}

}  // namespace ringside::providers
