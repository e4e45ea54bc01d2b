// In this file, top to bottom: the tracer; its trace: set-up, start and stop, breakpoints.
#include "providers/tracer/boot_tracer.h"

#include <algorithm>
#include <utility>

#include "providers/functions/fbt.h"
#include "providers/functions/syscall_provider.h"
#include "vmm/arch/arch.h"
#include "vmm/linux/stacks/stack_tables.h"

namespace ringside::providers {

void BootTracer::add_providers(Registry& registry) {
  if (kernel_.is_linux()) {
    registry.add(std::make_unique<SyscallProvider>(kernel_.text(), kernel_, points_));
  }
  registry.add(std::make_unique<FbtProvider>(kernel_.text(), kernel_, points_));
}

std::unique_ptr<KernelTrace> BootTracer::begin(ProbeSink& sink, GuestClock& clock,
                                               const Wants& wants) {
  return std::make_unique<BootTrace>(*this, sink, clock, wants.stacks);
}

void BootTracer::notice(std::string text) {
  const std::lock_guard lock(notices_lock_);
  notices_.push_back(std::move(text));
}

std::vector<std::string> BootTracer::take_notices() {
  const std::lock_guard lock(notices_lock_);
  return std::exchange(notices_, {});
}

BootTrace::BootTrace(BootTracer& tracer, ProbeSink& sink, GuestClock& clock, bool stacks)
    : tracer_(tracer),
      machine_(tracer.machine_),
      kernel_(tracer.kernel_),
      vcpus_(std::max(1U, machine_.vcpu_count())),
      host_reader_(machine_.memory(), kernel_.table()),
      stack_tables_(stacks ? std::optional(guest_linux::load_stack_tables(kernel_.text(), kernel_))
                           : std::nullopt),
      contexts_(vcpus_, machine_.memory(), kernel_,
                LinuxContextParts{.stack_tables = stack_tables_ ? &*stack_tables_ : nullptr,
                                  .follows_vcpus = true}),
      dispatcher_(kernel_, contexts_, sink, clock, tracer.points_.take_bound()) {}

BootTrace::~BootTrace() {
  disarm();
}

KernelTraps BootTrace::traps() {
  return {.view = {&host_reader_, first_task(kernel_), guest_linux::LinuxPaths(kernel_.types()),
                   guest_linux::LinuxPackets(kernel_.types(), kernel_.symbols()),
                   LinuxLocks(kernel_.types()),
                   [this] { host_reader_.set_table(kernel_.table_in(machine_.memory())); }},
          .inside = {kernel_, contexts_},
          .breakpoints = [this](vmm::StoppedVcpu& vcpu, GuestVirt at) { on_breakpoint(vcpu, at); },
          .gates = {&dispatcher_}};
}

Result<void> BootTrace::arm() {
  plan_.emplace(tracer_.points_.points(), BootPlan::find_markers(tracer_.points_));
  if (auto text = plan_->notice()) tracer_.notice(std::move(*text));
  vmm::VcpuExits::LoadedAt loaded_at;
  if (!kernel_.is_linux()) loaded_at = [this](GuestVirt at) { return kernel_.loaded_at(at); };
  setter_ = std::make_unique<BreakpointSetter>(machine_, *machine_.exits(), std::move(loaded_at));
  const BootPlan::Step step = plan_->start();
  auto done = setter_->set(step.wanted);
  const bool wanted = done.has_value();
  if (!done && step.instead) done = setter_->set(*step.instead);
  plan_->made(step, wanted);
  return done;
}

Result<void> BootTrace::remove(std::span<const dif::ProbeId> probes) {
  dispatcher_.publish({.removed = {probes.begin(), probes.end()}});
  return {};
}

void BootTrace::disarm() {
  {
    const std::lock_guard stepping(steps_lock_);
    if (!setter_) return;
    setter_.reset();
  }
  auto paused = vmm::PausedMachine::pause(machine_);
  if (!paused) return;  // gone, and the breakpoints with it
  if (const auto done = machine_.exits()->set_breakpoints(*paused, {}, {}); !done) {
    tracer_.notice(done.error().message);
  }
}

void BootTrace::on_breakpoint(vmm::StoppedVcpu& vcpu, GuestVirt address) {
  if (tracer_.points_.has_point(address)) fire(vcpu, address);
  const std::lock_guard stepping(steps_lock_);
  if (dispatcher_.is_open() && setter_) advance(vcpu, address);
}

void BootTrace::fire(vmm::StoppedVcpu& vcpu, GuestVirt address) {
  vmm::Trap trap;
  trap.address = address;
  trap.tsc = vcpu.guest_tsc();
  trap.registers = vcpu.registers();
  trap.percpu_base = GuestVirt(trap.registers.gs_base);
  const auto known = kernel_.cpu_of(trap.percpu_base);
  const std::uint32_t cpu = known && *known < vcpus_ ? *known : vcpu.index();
  if (cpu < vcpus_) dispatcher_.on_stop(trap, vcpu.index(), cpu);
}

void BootTrace::advance(vmm::StoppedVcpu& vcpu, GuestVirt address) {
  const bool asks = plan_->asks_system_state();
  const auto step =
      plan_->at(address, asks ? system_state(vcpu.registers()) : std::optional<std::uint32_t>());
  if (!step) return;
  if (asks || step->moment == BootPlan::Moment::Patched) learn_cpus(vcpu.registers());
  auto done = setter_->set(step->wanted);
  const bool wanted = done.has_value();
  if (!done && step->instead) {
    // Too early on this host is no news while there is a later moment.
    if (step->moment != BootPlan::Moment::Mapped) tracer_.notice(done.error().message);
    done = setter_->set(*step->instead);
  } else if (!done && !told_) {
    told_ = true;  // the next hits try again, and would say the same
    tracer_.notice(done.error().message);
  }
  plan_->made(*step, wanted);
}

std::optional<std::uint32_t> BootTrace::system_state(const Registers& registers) const {
  const guest_linux::Symbol* const variable = kernel_.symbols().find("system_state");
  if (variable == nullptr) return std::nullopt;
  const vmm::PageTableReader live(machine_.memory(), arch::page_table_of(registers));
  const auto state = load<std::uint32_t>(live, variable->address);
  return state ? std::optional(*state) : std::nullopt;
}

void BootTrace::learn_cpus(const Registers& registers) {
  const vmm::PageTableReader live(machine_.memory(), arch::page_table_of(registers));
  kernel_.learn_cpus(live);
}

}  // namespace ringside::providers
