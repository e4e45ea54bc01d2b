#include "providers/fire/vm_dispatch.h"

#include <algorithm>
#include <mutex>

#include "dif/engine/fire_context.h"
#include "providers/fire/host_clock.h"
#include "vmm/base/check.h"

namespace ringside::providers {
namespace {

using Kind = vmm::VcpuEvent::Kind;

static_assert(std::tuple_size_v<decltype(vmm::VcpuEvent::values)> == VmDispatcher::kReasonFact);
static_assert(static_cast<std::size_t>(Kind::Dirty) + 1 == vmm::VcpuEvent::kKinds);

std::size_t index_of(Kind kind) {
  return static_cast<std::size_t>(kind);
}

}  // namespace

void VmDispatcher::name_reason(std::uint32_t reason) {
  CHECK(reason < kReasons);
  named_[reason] = true;
}

void VmDispatcher::lead(Kind kind, std::optional<std::uint32_t> reason, dif::ProbeId probe,
                        const ArgumentPlan& plan) {
  CHECK(!reason || *reason < kReasons);
  wanted_.kinds[index_of(kind)] = true;
  plans_[index_of(kind)] = &plan;
  (reason ? by_reason_[*reason] : by_kind_[index_of(kind)]) = probe;
}

void VmDispatcher::seal(ProbeSink& sink, GuestClock& clock) {
  sink_ = &sink;
  clock_ = &clock;
}

bool VmDispatcher::wants_any() const {
  return std::find(wanted_.kinds.begin(), wanted_.kinds.end(), true) != wanted_.kinds.end();
}

dif::ProbeId VmDispatcher::probe_of(const vmm::VcpuEvent& event) const {
  const std::size_t kind = index_of(event.kind);
  if (kind >= by_kind_.size()) return kNone;
  const bool own = event.kind == Kind::Exit && event.reason < kReasons && named_[event.reason];
  return own ? by_reason_[event.reason] : by_kind_[kind];
}

void VmDispatcher::on_event(vmm::StoppedVcpu& vcpu, const vmm::VcpuEvent& event) {
  const dif::FireScope scope;
  const dif::ProbeId probe = probe_of(event);
  const std::uint32_t index = vcpu.index();
  if (probe == kNone || index >= contexts_.size()) return;
  HostFacts facts;
  std::ranges::copy(event.values, facts.begin());
  facts[kReasonFact] = event.reason;
  const std::uint64_t tsc = host_tsc();
  const std::uint64_t time = clock_->trap_time(vcpu.guest_tsc(), tsc);
  const std::lock_guard turn(sink_->turn(index));
  if (!open_.load(std::memory_order_acquire)) return;
  VcpuContext& context = contexts_[index];
  context.begin(vcpu, *plans_[index_of(event.kind)], facts);
  sink_->fire(probe, {index, time, clock_->wall_of_host(tsc)}, context);
}

}  // namespace ringside::providers
