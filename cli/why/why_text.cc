// In this file, top to bottom: pieces, CPUs, tasks, the rest, the whole.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "cli/why/why.h"
#include "vmm/linux/health/diagnosis.h"

namespace ringside::cli {
namespace {

using guest_linux::CpuReport;
using guest_linux::duration_text;
using guest_linux::HealthReport;
using guest_linux::LockKind;
using guest_linux::Task;
using guest_linux::TaskReport;
using guest_linux::VcpuReport;
using guest_linux::Wait;

constexpr std::size_t kTasksShown = 20;

class Writer {
 public:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  void heading(std::string_view title) { line("\n{}", title); }
  void stack(const TaskReport& report) {
    for (const auto& frame : report.stack) line("      {}", frame.text);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string task_text(const Task& task) {
  std::string text = fmt::format("{} (pid {}", task.name, task.pid);
  if (task.process != task.pid) text += fmt::format(" of process {}", task.process);
  text += ")";
  if (task.is_realtime()) text += fmt::format(", real-time {}", task.priority.value_or(0));
  return text;
}

std::string_view lock_name(LockKind kind) {
  switch (kind) {
    case LockKind::Mutex: return "mutex";
    case LockKind::RwSemaphore: return "rw-semaphore";
    case LockKind::PercpuRwSemaphore: return "per-CPU rw-semaphore";
    case LockKind::SpinLock: return "spin lock";
  }
  return "lock";
}

std::string lock_text(const Wait& wait) {
  std::string text = fmt::format("the {}", lock_name(wait.lock_kind));
  if (wait.lock.raw() == 0) return text + ", whose place was not found";
  text += wait.lock_name.empty() ? fmt::format(" at {:#x}", wait.lock.raw()) : " " + wait.lock_name;
  if (wait.owner != 0) {
    return text + fmt::format(", {} pid {}", wait.is_read_held ? "last read-locked by" : "held by",
                              wait.owner);
  }
  return text + (wait.is_read_held ? ", held by readers that are not known"
                                   : ", whose holder is not known");
}

std::string wait_text(const Wait& wait) {
  const std::string place = wait.function.empty() ? "" : " in " + wait.function;
  switch (wait.what) {
    case Wait::For::Lock: return "waits for " + lock_text(wait);
    case Wait::For::Io: return "waits for I/O" + place;
    case Wait::For::FrozenFilesystem:
      return fmt::format("waits until the file system on {} is thawed", wait.filesystem);
    case Wait::For::Completion: return "waits for another task or a device" + place;
    case Wait::For::Memory: return "waits for memory" + place;
    case Wait::For::Unknown: break;
  }
  return "sleeps" + place;
}

std::string since_text(const Task& task) {
  return task.since ? " for " + duration_text(*task.since) : std::string();
}

/// The place that a vCPU is at by its registers.
std::string vcpu_text(const VcpuReport& vcpu) {
  using Mode = VcpuReport::Mode;
  switch (vcpu.mode) {
    case Mode::User: return fmt::format("in user mode at {:#x}", vcpu.pc);
    case Mode::Firmware:
      return vcpu.has_not_begun ? "before its first instruction, or waiting to be started"
                                : fmt::format("in firmware or a boot loader at {:#x}", vcpu.pc);
    case Mode::Narrow: return fmt::format("in a system of 32 bits at {:#x}", vcpu.pc);
    case Mode::Other: return fmt::format("in something that is no Linux, at {:#x}", vcpu.pc);
    case Mode::Kernel:
    case Mode::Crashed: break;
  }
  std::string text = vcpu.mode == Mode::Crashed ? "left in the kernel that crashed, " : "";
  text += "in " + (vcpu.where.empty() ? fmt::format("{:#x}", vcpu.pc) : vcpu.where);
  if (vcpu.is_halted) text += ", halted";
  return text + (vcpu.interrupts_on ? ", interrupts on" : ", interrupts off");
}

void write_cpu(Writer& out, const HealthReport& report, const CpuReport& cpu) {
  const auto vcpu = std::ranges::find_if(
      report.vcpus, [&](const VcpuReport& each) { return each.cpu == cpu.cpu; });
  std::string text = fmt::format("  CPU {}", cpu.cpu);
  if (vcpu != report.vcpus.end() && vcpu->vcpu != cpu.cpu)
    text += fmt::format(" (vCPU {})", vcpu->vcpu);
  text += cpu.is_idle
              ? ": idle"
              : ": " + (cpu.running ? task_text(cpu.running->task) + since_text(cpu.running->task)
                                    : std::string("what it runs is not known"));
  if (vcpu != report.vcpus.end()) text += "; " + vcpu_text(*vcpu);
  if (!cpu.is_online) text += "; off line";
  if (cpu.queue_length) text += fmt::format("; run queue {}", *cpu.queue_length);
  if (cpu.owes_quiescent_state) text += "; RCU waits for it";
  out.line("{}", text);
  if (!cpu.is_idle && cpu.running) out.stack(*cpu.running);
}

void write_tasks(Writer& out, std::string_view title, const std::vector<TaskReport>& tasks,
                 bool with_stacks) {
  if (tasks.empty()) return;
  out.heading(title);
  for (std::size_t i = 0; i < tasks.size() && i < kTasksShown; ++i) {
    const TaskReport& report = tasks[i];
    out.line("  {} {}{}{}", letter_of(report.task.state), task_text(report.task),
             since_text(report.task), report.wait ? ": " + wait_text(*report.wait) : "");
    if (with_stacks) out.stack(report);
  }
  if (tasks.size() > kTasksShown) out.line("  and {} more", tasks.size() - kTasksShown);
}

void write_vcpus_alone(Writer& out, const HealthReport& report) {
  if (report.vcpus.empty()) return;
  out.heading("vCPUs");
  for (const VcpuReport& vcpu : report.vcpus) out.line("  vCPU {}: {}", vcpu.vcpu, vcpu_text(vcpu));
}

std::string mebibytes(std::optional<std::uint64_t> bytes) {
  return bytes ? fmt::format("{} MiB", *bytes >> 20) : "?";
}

void write_memory(Writer& out, const guest_linux::MemoryReport& memory) {
  out.heading("Memory");
  out.line("  {} of {} free; page cache {}, anonymous {}, shared {}, dirty {}, being written {}",
           mebibytes(memory.free), mebibytes(memory.total), mebibytes(memory.page_cache),
           mebibytes(memory.anonymous), mebibytes(memory.shared), mebibytes(memory.dirty),
           mebibytes(memory.writeback));
  if (memory.swap_total.value_or(0) != 0) {
    out.line("  swap: {} of {} free", mebibytes(memory.swap_free), mebibytes(memory.swap_total));
  }
  if (memory.oom_kills.value_or(0) != 0) out.line("  killed for want of it: {}", *memory.oom_kills);
  if (memory.pressure.value_or(0) >= 1) {
    out.line("  all work waited for memory {:.0f} % of the last 10 s", *memory.pressure);
  }
}

void write_disks(Writer& out, const HealthReport& report) {
  if (report.disks.empty()) return;
  out.heading("Disks with requests in flight");
  for (const auto& disk : report.disks) {
    out.line("  {}: {} with the driver{}{}", disk.name, disk.in_flight,
             disk.accounted ? fmt::format(", {} in all", *disk.accounted) : "",
             disk.oldest ? ", the oldest for " + duration_text(*disk.oldest) : "");
    for (const auto& request : disk.requests) {
      out.line("      {} of {} bytes at sector {}{}", request.operation, request.bytes,
               request.sector, request.age ? ", for " + duration_text(*request.age) : "");
    }
  }
}

void write_kernel(Writer& out, const HealthReport& report) {
  if (report.rcu && report.rcu->in_grace_period && report.rcu->age) {
    out.heading("RCU");
    out.line("  a grace period of {}{}", duration_text(*report.rcu->age),
             report.rcu->cpus.empty()
                 ? ""
                 : fmt::format(" waits for CPU {}", fmt::join(report.rcu->cpus, ", ")));
  }
  if (!report.frozen.empty()) {
    out.heading("Frozen file systems");
    for (const auto& each : report.frozen) out.line("  {} on {}", each.type, each.device);
  }
  if (!report.log.empty()) {
    out.heading("Last lines of the kernel's log");
    for (const auto& each : report.log) {
      out.line("  [{:5}.{:06}] {}", each.time / 1'000'000'000, each.time / 1000 % 1'000'000,
               each.text);
    }
  }
}

void write_unknown(Writer& out, const HealthReport& report) {
  if (report.unknown.empty()) return;
  out.heading("Not known");
  for (const std::string& each : report.unknown) out.line("  {}", each);
}

}  // namespace

std::string health_text(const std::string& machine, const HealthReport& report) {
  Writer out;
  out.line("{}: {}", machine, report.causes.front().text);
  for (std::size_t i = 1; i < report.causes.size(); ++i) {
    out.line("  also: {}", report.causes[i].text);
  }
  if (report.release.empty()) {
    write_vcpus_alone(out, report);
    write_unknown(out, report);
    return out.take();
  }
  const std::string tasks =
      report.has_types ? fmt::format("; {} tasks", report.task_count) : std::string();
  out.line("\nLinux {}{}{}{}", report.release,
           report.uptime ? ", up for " + duration_text(*report.uptime) : "", tasks,
           report.load ? fmt::format("; load {:.2f} {:.2f} {:.2f}", (*report.load)[0],
                                     (*report.load)[1], (*report.load)[2])
                       : "");
  out.heading("CPUs");
  for (const CpuReport& cpu : report.cpus) write_cpu(out, report, cpu);
  if (report.vcpus.empty()) out.line("  (the vCPUs' registers are not known)");
  for (const VcpuReport& vcpu : report.vcpus) {
    if (!vcpu.cpu) out.line("  vCPU {}: {}", vcpu.vcpu, vcpu_text(vcpu));
  }
  write_tasks(out, "Tasks in state D", report.waiting, true);
  write_tasks(out, "Holders of locks that they wait for", report.holders, true);
  write_tasks(out, "Tasks that want a CPU and get none", report.starving, false);
  write_disks(out, report);
  write_memory(out, report.memory);
  write_kernel(out, report);
  write_unknown(out, report);
  return out.take();
}

}  // namespace ringside::cli
