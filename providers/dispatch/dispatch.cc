#include "providers/dispatch/dispatch.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "dif/engine/fire_context.h"
#include "providers/clock/host_clock.h"
#include "providers/dispatch/firing_pause.h"
#include "vmm/arch/arch.h"
#include "vmm/linux/layout.h"

namespace ringside::providers {

TrapDispatcher::TrapDispatcher(const guest_linux::Kernel& kernel, LinuxContexts& contexts,
                               ProbeSink& sink, GuestClock& clock,
                               const DispatchTable::Change& first)
    : kernel_(kernel),
      contexts_(contexts),
      sink_(sink),
      clock_(clock),
      tally_(contexts.size()),
      pending_(guest_linux::kernel_stack_bytes(kernel.symbols())),
      table_(std::make_unique<const DispatchTable>(DispatchTable(), first, contexts.size())),
      current_(table_.get()) {}

DispatchCounters TrapDispatcher::counters() const {
  return {closed_.load(), no_point_.load(), unknown_cpu_.load(), pending_.displaced()};
}

void TrapDispatcher::publish(const DispatchTable::Change& change) {
  const auto cpus = contexts_.size();
  const auto former =
      std::exchange(table_, std::make_unique<const DispatchTable>(*table_, change, cpus));
  current_.store(table_.get(), std::memory_order_release);
  sink_.wait_for_firings();
}

void TrapDispatcher::on_trap(const vmm::Trap& trap) {
  if (is_closed()) return;
  const auto cpu = cpu_of(trap);
  if (!cpu) {
    unknown_cpu_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  on_cpu(trap, {std::nullopt, trap.percpu_base, trap.registers}, *cpu);
}

void TrapDispatcher::on_stop(const vmm::Trap& trap, unsigned vcpu, std::uint32_t cpu) {
  if (!is_closed()) on_cpu(trap, {vcpu, trap.percpu_base, trap.registers}, cpu);
}

std::optional<std::uint32_t> TrapDispatcher::cpu_of(const vmm::Trap& trap) const {
  const auto cpu = trap.cpu ? trap.cpu : kernel_.cpu_of(trap.percpu_base);
  return cpu && *cpu < contexts_.size() ? cpu : std::nullopt;
}

void TrapDispatcher::replay(const vmm::Trap& trap, std::uint64_t time,
                            const GuestClock::Moment& now) {
  const dif::FireScope scope;
  const auto cpu = cpu_of(trap);
  if (!cpu) {
    unknown_cpu_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  time = in_order(time, trap.tsc, *cpu);
  const dif::FireRecord record{*cpu, time, now.wall_at(time)};
  const std::lock_guard lock(sink_.firing_lock(*cpu));
  if (is_closed()) return;
  LinuxContext& context = contexts_[*cpu];
  context.replay(trap, time);
  fire_at(trap.address, record, context);
  tally_.add_recorded(*cpu);
}

void TrapDispatcher::on_cpu(const vmm::Trap& trap, const FiringVcpu& here, std::uint32_t cpu) {
  if (serve(trap, here, cpu) == AfterFiring::StandStill) sink_.settle(cpu);
}

std::uint64_t TrapDispatcher::in_order(std::uint64_t time, std::uint64_t tsc, std::uint32_t cpu) {
  if (!is_in_one_order_) return time;
  const std::uint64_t since = tsc - std::exchange(latest_tsc_, tsc);
  // One that fires after later ones keeps its time.
  if (static_cast<std::int64_t>(since) < 0) return clock_.in_order(time, cpu);
  latest_ = clock_.in_order(clock_.after(latest_, since, time), cpu);
  return latest_;
}

/// Counts the trap if so.
bool TrapDispatcher::is_closed() {
  if (is_open()) return false;
  closed_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

TrapDispatcher::AfterFiring TrapDispatcher::serve(const vmm::Trap& trap, const FiringVcpu& here,
                                                  std::uint32_t cpu) {
  const dif::FireScope scope;
  const std::uint64_t tsc = host_tsc();
  const auto is_late =
      is_in_one_order_ ? GuestClock::IsLate::ForAnyTime : GuestClock::IsLate::ForAWhile;
  const std::uint64_t time = in_order(clock_.trap_time(trap.tsc, tsc, cpu, is_late), trap.tsc, cpu);
  // A trap may have waited for all that was recorded before it.
  const auto ago = static_cast<std::int64_t>(is_in_one_order_ ? clock_.since(time, tsc) : 0);
  const dif::FireRecord record{cpu, time, clock_.wall_of_host(tsc) - ago};
  const std::lock_guard lock(sink_.firing_lock(cpu));
  if (is_closed()) return AfterFiring::Resume;  // while we waited
  LinuxContext& context = contexts_[cpu];
  context.begin(trap.registers, trap.percpu_base, trap.task, TrapMoment{trap.tsc, time});
  fire_at(trap.address, record, context);
  if (context.keeps_still()) sink_.keep(cpu, here);
  const std::uint64_t waited = clock_.since(time, host_tsc());
  tally_.add(cpu, waited);
  context.waited(waited);
  return context.keeps_still() ? AfterFiring::StandStill : AfterFiring::Resume;
}

void TrapDispatcher::fire_at(GuestVirt address, const dif::FireRecord& record,
                             LinuxContext& context) {
  const DispatchTable& table = *current_.load(std::memory_order_acquire);
  const AddressBindings* const place = table.find(address);
  if (place == nullptr) {
    no_point_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  table.hit(*place, record.vcpu);
  for (const Binding& binding : table.bindings(*place)) fire(binding, record, context);
  if (const auto* const ends = table.ends(*place)) fire_returns(*ends, record, context);
  if (place->waiting != 0) await_return(table.waiting(*place), record, context);
  if (place->by_number >= 0) fire_by_number(table, *place, record, context);
}

/// Where nobody can wait for the return, the jump is the last that is seen of the function.
void TrapDispatcher::await_return(std::span<const Binding> jump, const dif::FireRecord& record,
                                  LinuxContext& context) {
  if (!arch::condition_holds(jump.front().condition, context.registers().rflags)) return;
  const auto moment = context.task_moment();
  if (moment && pending_.wait(*moment, jump)) return;
  for (Binding binding : jump) {
    binding.plan = &kFunctionExitArguments;
    fire(binding, record, context);
  }
}

void TrapDispatcher::fire_returns(const DispatchTable::Ends& ends, const dif::FireRecord& record,
                                  LinuxContext& context) {
  if (!arch::condition_holds(ends.shared.condition, context.registers().rflags)) return;
  const auto moment = context.task_moment();
  if (!moment) return;
  const auto ended = pending_.end(*moment, ends.probes, ends.shared.role);
  for (const PendingReturn& one : ended.all()) {
    Binding binding{.probe = one.probe, .site = one.site};
    binding.plan = ends.shared.role == Role::Ends ? one.plan : &kFunctionExitArguments;
    fire(binding, record, context);
  }
}

void TrapDispatcher::fire(const Binding& binding, const dif::FireRecord& record,
                          LinuxContext& context) {
  if (!arch::condition_holds(binding.condition, context.registers().rflags)) return;
  context.select(binding);
  if (binding.process != 0 && !context.is_in(binding.process)) return;
  if (context.passes_filter()) sink_.fire(binding.probe, record, context);
}

void TrapDispatcher::fire_by_number(const DispatchTable& table, const AddressBindings& place,
                                    const dif::FireRecord& record, LinuxContext& context) {
  context.select(table.shared(place));
  const auto number = context.system_call_number();
  const auto probe = number ? table.probe_of(place, *number) : std::nullopt;
  if (probe) sink_.fire(*probe, record, context);
}

}  // namespace ringside::providers
