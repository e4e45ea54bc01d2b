#include "vmm/linux/health/vcpus.h"

#include <algorithm>

#include "vmm/arch/arch.h"

namespace ringside::guest_linux {
namespace {

using Mode = VcpuReport::Mode;

constexpr std::uint64_t kInterruptFlag = 1 << 9;
constexpr std::uint64_t kResetVector = 0xfff0;
constexpr std::byte kHalt{0xf4};

Mode mode_of(const Registers& registers) {
  // Cores that lack control registers have zeros there.
  if (registers.in_user_mode()) return Mode::User;
  if (arch::in_kernel_half(GuestVirt(registers.rip))) return Mode::Kernel;
  return arch::pages(registers) && arch::in_long_mode(registers) ? Mode::Other : Mode::Firmware;
}

bool is_online(const KernelView& view, std::uint32_t cpu) {
  const auto mask = view.symbol("__cpu_online_mask");
  const auto word = mask ? view.load<std::uint64_t>(mask->wrapping_add(std::uint64_t{cpu} / 64 * 8))
                         : std::nullopt;
  return !word || (*word >> cpu % 64 & 1) != 0;
}

class CpuReader {
 public:
  CpuReader(const KernelView& view, const Tasks& tasks)
      : view_(view),
        tasks_(tasks),
        current_(view.field("rq", "curr")),
        idle_(view.field("rq", "idle")),
        length_(view.field("rq", "nr_running")),
        realtime_(view.field("rq", "rt.rt_nr_running")) {}

  CpuReport read(std::uint32_t cpu) const {
    CpuReport report;
    report.cpu = cpu;
    const auto queue = view_.percpu("runqueues", cpu);
    if (!queue) return report;
    report.queue_length = view_.value(*queue, length_);
    report.realtime_tasks = view_.value(*queue, realtime_);
    const auto current = view_.pointer(*queue, current_);
    report.is_idle = current && current == view_.pointer(*queue, idle_);
    auto task = current ? tasks_.read(*current) : std::nullopt;
    if (task) report.running = TaskReport{std::move(*task), {}, {}};
    return report;
  }

 private:
  const KernelView& view_;
  const Tasks& tasks_;
  std::optional<Field> current_, idle_, length_, realtime_;
};

/// Linux's number of a vCPU: by the per-CPU base in one of its GS bases, else by the stack that it
/// is on.
std::optional<std::uint32_t> cpu_of(const KernelView& view, const Tasks& tasks,
                                    const Registers& registers,
                                    const std::vector<CpuReport>& cpus) {
  for (const std::uint64_t base : {registers.gs_base, registers.kernel_gs_base}) {
    if (base >> 63 == 0) continue;
    if (const auto cpu = view.kernel().cpu_of(GuestVirt(base))) return cpu;
  }
  for (const CpuReport& cpu : cpus) {
    if (!cpu.running) continue;
    if (GuestVirt(registers.rsp).is_in(cpu.running->task.stack_base, tasks.stack_bytes())) {
      return cpu.cpu;
    }
  }
  return std::nullopt;
}

}  // namespace

VcpuReport describe_vcpu(unsigned vcpu, const Registers& registers, const KernelView* view) {
  VcpuReport report;
  report.vcpu = vcpu;
  report.mode = mode_of(registers);
  report.rip = registers.rip;
  report.interrupts_on = (registers.rflags & kInterruptFlag) != 0;
  report.has_not_begun =
      report.mode == Mode::Firmware && registers.rip == kResetVector && !arch::pages(registers);
  if (view == nullptr || report.mode != Mode::Kernel) return report;
  report.where = view->code_name(registers.rip);
  report.is_halted = view->load<std::byte>(GuestVirt(registers.rip - 1)) == kHalt;
  return report;
}

Result<std::vector<Registers>> read_registers(vmm::PausedMachine& machine) {
  std::vector<Registers> all;
  for (unsigned vcpu = 0; vcpu < machine.vcpu_count(); ++vcpu) {
    all.push_back(TRY(machine.registers(vcpu)));
  }
  return all;
}

std::vector<CpuReport> describe_cpus(const KernelView& view, const Tasks& tasks,
                                     const std::vector<Registers>& registers,
                                     std::vector<VcpuReport>& vcpus) {
  const CpuReader reader(view, tasks);
  std::vector<CpuReport> cpus;
  for (std::uint32_t cpu = 0; cpu < view.cpu_count(); ++cpu) cpus.push_back(reader.read(cpu));
  for (std::size_t i = 0; i < vcpus.size() && i < registers.size(); ++i) {
    vcpus[i].cpu = cpu_of(view, tasks, registers[i], cpus);
    if (!vcpus[i].cpu || vcpus[i].mode != Mode::Kernel) continue;
    CpuReport& cpu = cpus[*vcpus[i].cpu];
    if (cpu.running) cpu.running->stack = tasks.running_stack(registers[i]);
  }
  std::erase_if(cpus, [&](CpuReport& cpu) {
    cpu.is_online = is_online(view, cpu.cpu);
    return !cpu.is_online &&
           std::ranges::none_of(vcpus, [&](const VcpuReport& vcpu) { return vcpu.cpu == cpu.cpu; });
  });
  return cpus;
}

}  // namespace ringside::guest_linux
