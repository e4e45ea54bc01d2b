// In this file, top to bottom: set-up, start and stop, breakpoints.
#include "providers/boot/boot_tracer.h"

#include <algorithm>
#include <utility>

#include "providers/fbt.h"
#include "providers/syscall_provider.h"
#include "vmm/arch/arch.h"

namespace ringside::providers {

BootTracer::BootTracer(vmm::Machine& machine, guest_linux::FileKernel& kernel)
    : machine_(machine),
      kernel_(kernel),
      vcpus_(std::max(1U, machine.vcpu_count())),
      points_(kernel),
      contexts_(vcpus_, machine.memory(), kernel),
      host_reader_(machine.memory(), kernel.table()),
      dispatcher_(kernel, contexts_) {
  points_.set_dispatcher(&dispatcher_);
  for (LinuxContext& context : contexts_) {
    context.follow_vcpus();
  }
}

BootTracer::~BootTracer() {
  disarm();
}

void BootTracer::add_providers(Registry& registry) {
  if (kernel_.is_linux()) {
    registry.add(std::make_unique<SyscallProvider>(kernel_.text(), kernel_, points_));
  }
  registry.add(std::make_unique<FbtProvider>(kernel_.text(), kernel_, points_));
}

void BootTracer::prepare(ProbeSink& sink, GuestClock& clock, FireLoopParts& parts, bool stacks) {
  dispatcher_.begin(sink, clock);
  if (stacks) {
    stack_tables_ = guest_linux::StackTables::load(kernel_.text(), kernel_);
    for (LinuxContext& context : contexts_) {
      context.set_stack_tables(&*stack_tables_);
    }
  }
  parts.kernel = &host_reader_;
  parts.first_task = first_task(kernel_);
  parts.look_again = [this] { host_reader_.set_table(kernel_.table_in(machine_.memory())); };
  parts.gates.push_back(&dispatcher_);
}

Result<void> BootTracer::arm() {
  plan_.emplace(points_.points(), BootPlan::find_markers(points_));
  if (auto text = plan_->notice()) notice(std::move(*text));
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

Result<void> BootTracer::begin_to_add() {
  return fail(ErrorCode::Unsupported,
              "the probes of a machine that is traced from its first instruction are all chosen "
              "before it: enable them when tracing begins");
}

/// The breakpoints stay, for the plan is made; nothing fires there.
Result<void> BootTracer::remove(std::span<const dif::ProbeId> probes) {
  dispatcher_.remove(probes);
  dispatcher_.publish();
  return {};
}

void BootTracer::disarm() {
  {
    const std::lock_guard stepping(steps_lock_);
    if (!setter_) return;
    setter_.reset();
  }
  auto paused = vmm::PausedMachine::pause(machine_);
  if (!paused) return;  // gone, and the breakpoints with it
  if (const auto done = machine_.exits()->set_breakpoints(*paused, {}, {}); !done) {
    notice(done.error().message);
  }
}

void BootTracer::on_breakpoint(vmm::StoppedVcpu& vcpu, GuestVirt address) {
  if (points_.has_point(address)) fire(vcpu, address);
  const std::lock_guard stepping(steps_lock_);
  if (dispatcher_.is_open() && setter_) advance(vcpu, address);
}

void BootTracer::fire(vmm::StoppedVcpu& vcpu, GuestVirt address) {
  vmm::Trap trap;
  trap.address = address;
  trap.tsc = vcpu.guest_tsc();
  trap.registers = vcpu.registers();
  trap.percpu_base = GuestVirt(trap.registers.gs_base);
  const auto known = kernel_.cpu_of(trap.percpu_base);
  const std::uint32_t cpu = known && *known < vcpus_ ? *known : vcpu.index();
  if (cpu < vcpus_) dispatcher_.on_stop(trap, cpu);
}

void BootTracer::advance(vmm::StoppedVcpu& vcpu, GuestVirt address) {
  const bool asks = plan_->asks_system_state();
  const auto step =
      plan_->at(address, asks ? system_state(vcpu.registers()) : std::optional<std::uint32_t>());
  if (!step) return;
  if (asks || step->moment == BootPlan::Moment::Patched) learn_cpus(vcpu.registers());
  auto done = setter_->set(step->wanted);
  const bool wanted = done.has_value();
  if (!done && step->instead) {
    // Too early on this host is no news while there is a later moment.
    if (step->moment != BootPlan::Moment::Mapped) notice(done.error().message);
    done = setter_->set(*step->instead);
  } else if (!done && !told_) {
    told_ = true;  // the next hits try again, and would say the same
    notice(done.error().message);
  }
  plan_->made(*step, wanted);
}

std::optional<std::uint32_t> BootTracer::system_state(const Registers& registers) const {
  const guest_linux::Symbol* const variable = kernel_.symbols().find("system_state");
  if (variable == nullptr) return std::nullopt;
  const vmm::PageTableReader live(machine_.memory(), arch::page_table_of(registers));
  const auto state = load<std::uint32_t>(live, variable->address);
  return state ? std::optional(*state) : std::nullopt;
}

void BootTracer::learn_cpus(const Registers& registers) {
  const vmm::PageTableReader live(machine_.memory(), arch::page_table_of(registers));
  kernel_.learn_cpus(live);
}

void BootTracer::notice(std::string text) {
  const std::lock_guard lock(notices_lock_);
  notices_.push_back(std::move(text));
}

std::vector<std::string> BootTracer::take_notices() {
  const std::lock_guard lock(notices_lock_);
  return std::exchange(notices_, {});
}

}  // namespace ringside::providers
