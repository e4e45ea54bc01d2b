#include "vmm/linux/health/vcpus.h"

#include <fmt/format.h>

#include <algorithm>

#include "vmm/arch/arch.h"
#include "vmm/linux/online_cpus.h"

namespace ringside::guest_linux {
namespace {

using Mode = VcpuReport::Mode;

constexpr std::uint64_t kResetVector = 0xfff0;

/// Paging without long mode: firmware and boot loaders that page are in long mode.
bool is_narrow(const Registers& registers) {
  return arch::pages(registers) && !arch::in_long_mode(registers);
}

Mode mode_of(const Registers& registers) {
  // Cores that lack control registers have zeros there.
  if (registers.in_user_mode()) return Mode::User;
  if (arch::in_kernel_half(GuestVirt(registers.*arch::kProgramCounter))) return Mode::Kernel;
  return arch::pages(registers) && arch::in_long_mode(registers) ? Mode::Other : Mode::Firmware;
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

/// The CPU whose task has these page tables (mm_struct.pgd), by its thread's own base where several
/// threads of one process run. Where page tables are isolated, CR3 may name the user's half.
class TasksByTables {
 public:
  explicit TasksByTables(const KernelView& view)
      : view_(view),
        mm_(view.field("task_struct", "mm")),
        root_(view.field("mm_struct", "pgd")),
        base_(view.field("task_struct", "thread.fsbase")),
        direct_map_(view.variable<std::uint64_t>("page_offset_base")) {}

  std::optional<std::uint32_t> cpu_of(const Registers& registers,
                                      const std::vector<CpuReport>& cpus) const {
    const GuestPhys in_use = arch::kernel_half_root(registers.cr3);
    std::vector<std::uint32_t> all, exact;
    for (const CpuReport& cpu : cpus) {
      if (!cpu.running || !direct_map_) continue;
      const GuestVirt task = cpu.running->task.address;
      const auto mm = view_.pointer(task, mm_);
      const auto root = mm ? view_.pointer(*mm, root_) : std::nullopt;
      if (!root || arch::kernel_half_root(root->raw() - *direct_map_) != in_use) continue;
      all.push_back(cpu.cpu);
      if (view_.value(task, base_) == registers.fs_base) exact.push_back(cpu.cpu);
    }
    if (all.size() == 1) return all.front();
    return exact.size() == 1 ? std::optional(exact.front()) : std::nullopt;
  }

 private:
  const KernelView& view_;
  std::optional<Field> mm_, root_, base_;
  std::optional<std::uint64_t> direct_map_;
};

/// Linux's number of a vCPU: by the per-CPU base in one of its GS bases, else by the stack that it
/// is on, or by its page tables: in user mode and on the kernel's first instructions the kernel's
/// base is in the other register, which not all ways to registers show.
std::optional<std::uint32_t> cpu_of(const KernelView& view, const Tasks& tasks,
                                    const Registers& registers,
                                    const std::vector<CpuReport>& cpus) {
  for (const arch::Register which : arch::kPerCpuBases) {
    const GuestVirt base(registers.*which);
    if (!arch::in_kernel_half(base)) continue;
    if (const auto cpu = view.kernel().cpu_of(base)) return cpu;
  }
  for (const CpuReport& cpu : cpus) {
    if (!cpu.running) continue;
    if (GuestVirt(registers.*arch::kStackPointer)
            .is_in(cpu.running->task.stack_base, tasks.stack_bytes())) {
      return cpu.cpu;
    }
  }
  return TasksByTables(view).cpu_of(registers, cpus);
}

}  // namespace

VcpuReport describe_vcpu(unsigned vcpu, const Registers& registers, const KernelView* view) {
  VcpuReport report;
  report.vcpu = vcpu;
  // Where Linux is known, a core that does not say so may be of a program of 32 bits.
  report.mode = view == nullptr && is_narrow(registers) ? Mode::Narrow : mode_of(registers);
  report.pc = registers.*arch::kProgramCounter;
  report.interrupts_on = (registers.rflags & arch::kInterruptFlag) != 0;
  report.has_not_begun = report.mode == Mode::Firmware &&
                         registers.*arch::kProgramCounter == kResetVector &&
                         !arch::pages(registers);
  if (view == nullptr || report.mode != Mode::Kernel) return report;
  report.where = view->code_name(registers.*arch::kProgramCounter);
  report.is_halted =
      view->load<std::byte>(GuestVirt(registers.*arch::kProgramCounter).wrapping_sub(1)) ==
      arch::kHalt;
  return report;
}

VcpuRegisters read_registers(vmm::PausedMachine& machine) {
  VcpuRegisters found;
  for (unsigned vcpu = 0; vcpu < machine.vcpu_count(); ++vcpu) {
    if (const auto registers = machine.registers(vcpu)) {
      found.known.emplace(vcpu, *registers);
    } else {
      found.unknown.push_back(
          fmt::format("registers of vCPU {}: {}", vcpu, registers.error().message));
    }
  }
  return found;
}

std::vector<CpuReport> describe_cpus(const KernelView& view, const Tasks& tasks,
                                     const VcpuRegisters& registers,
                                     std::vector<VcpuReport>& vcpus) {
  const CpuReader reader(view, tasks);
  std::vector<CpuReport> cpus;
  for (std::uint32_t cpu = 0; cpu < view.cpu_count(); ++cpu) cpus.push_back(reader.read(cpu));
  for (VcpuReport& vcpu : vcpus) {
    if (vcpu.mode == Mode::Crashed) continue;
    const Registers& its = registers.known.at(vcpu.vcpu);
    vcpu.cpu = cpu_of(view, tasks, its, cpus);
    if (!vcpu.cpu || vcpu.mode != Mode::Kernel) continue;
    CpuReport& cpu = cpus[*vcpu.cpu];
    if (cpu.running) cpu.running->stack = tasks.running_stack(its);
  }
  const OnlineCpus online(view.kernel());
  std::erase_if(cpus, [&](CpuReport& cpu) {
    cpu.is_online = online.has(view.reader(), cpu.cpu).value_or(true);
    return !cpu.is_online &&
           std::ranges::none_of(vcpus, [&](const VcpuReport& vcpu) { return vcpu.cpu == cpu.cpu; });
  });
  return cpus;
}

}  // namespace ringside::guest_linux
