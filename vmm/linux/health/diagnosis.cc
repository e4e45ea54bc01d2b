// In this file, top to bottom: words, no Linux, CPUs, locks, storage and memory, the order of it.
#include "vmm/linux/health/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

namespace ringside::guest_linux {
namespace {

using Kind = Cause::Kind;
using Mode = VcpuReport::Mode;

constexpr std::uint64_t kLongRealtime = kSecond / 10;
constexpr std::uint64_t kLongGracePeriod = 10 * kSecond;
/// A kill within this time counts as a sign of what is wrong now.
constexpr std::uint64_t kRecentKill = 10 * kSecond;
/// Queued tasks for each CPU that count as a crowd; and a bound, which no real run queue reaches.
constexpr std::uint64_t kCrowd = 4, kMostQueued = 1 << 22;

std::string name_of_task(const Task& task) {
  return fmt::format("{} (pid {})", task.name, task.pid);
}

std::string for_time(std::optional<std::uint64_t> time) {
  return time ? " for " + duration_text(*time) : std::string();
}

std::string counted(std::size_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

bool waits_long(const TaskReport& report) {
  return report.task.since.value_or(0) >= kLong;
}

class Judge {
 public:
  explicit Judge(const HealthReport& report) : report_(report) {}

  std::vector<Cause> run();

 private:
  void add(Kind kind, std::string text) { causes_.push_back({kind, std::move(text)}); }
  void judge_host();
  void judge_stopped();
  void judge_without_linux();
  void judge_crash_kernel();
  void judge_panic();
  void judge_interrupts();
  void judge_timers();
  void judge_calls();
  void judge_lock_cycles();
  void judge_frozen();
  void judge_storage();
  void judge_lock_holders();
  void judge_memory();
  void judge_soft_lockups();
  void judge_kernel_spin();
  std::string where_is(const CpuReport& runs) const;
  void judge_realtime();
  void judge_rcu();
  void judge_busy();
  void judge_stuck();
  void judge_idle();

  const TaskReport* report_of(GuestVirt task) const;
  const CpuReport* cpu(std::optional<std::uint32_t> number) const;
  std::size_t online_cpus() const;
  std::string what_it_does(const TaskReport& report) const;
  std::size_t count_waits(Wait::For what) const;

  const HealthReport& report_;
  std::vector<Cause> causes_;
};

const TaskReport* Judge::report_of(GuestVirt task) const {
  for (const auto* list : {&report_.waiting, &report_.holders}) {
    for (const TaskReport& report : *list) {
      if (report.task.address == task) return &report;
    }
  }
  for (const CpuReport& each : report_.cpus) {
    if (each.running && each.running->task.address == task) return &*each.running;
  }
  return nullptr;
}

const CpuReport* Judge::cpu(std::optional<std::uint32_t> number) const {
  const auto found =
      std::ranges::find_if(report_.cpus, [&](const CpuReport& each) { return number == each.cpu; });
  return found == report_.cpus.end() ? nullptr : &*found;
}

std::size_t Judge::count_waits(Wait::For what) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      report_.waiting,
      [&](const TaskReport& each) { return each.wait && each.wait->what == what; }));
}

std::string Judge::what_it_does(const TaskReport& report) const {
  if (report.task.is_on_cpu) {
    return report.task.cpu ? fmt::format("runs on CPU {}", *report.task.cpu) : "runs";
  }
  if (report.task.state == TaskState::Running) return "wants a CPU" + for_time(report.task.since);
  if (!report.wait) return "sleeps";
  const std::string place = report.wait->function.empty() ? "" : " in " + report.wait->function;
  switch (report.wait->what) {
    case Wait::For::Io: return "waits for I/O" + place + for_time(report.task.since);
    case Wait::For::FrozenFilesystem: return "waits for a frozen file system";
    case Wait::For::Memory: return "waits for memory" + place;
    case Wait::For::Lock: return "waits for a lock" + place + for_time(report.task.since);
    case Wait::For::Completion:
      return "waits for another task or a device" + place + for_time(report.task.since);
    case Wait::For::Unknown: break;
  }
  return "sleeps" + place + for_time(report.task.since);
}

void Judge::judge_host() {
  for (const std::string& line : report_.held_back) {
    add(Kind::Host, "the host does not let it run: " + line);
  }
}

void Judge::judge_stopped() {
  if (report_.stopped_by) add(Kind::Stopped, "the guest does not run: " + *report_.stopped_by);
}

void Judge::judge_without_linux() {
  const auto& vcpus = report_.vcpus;
  if (vcpus.empty()) {
    add(Kind::NoLinux, report_.kernel_trouble);
  } else if (std::ranges::all_of(vcpus, &VcpuReport::has_not_begun)) {
    add(Kind::NotStarted,
        "no vCPU has executed its first instruction: the machine was never started");
  } else if (std::ranges::all_of(vcpus, [](auto& each) { return each.mode == Mode::Firmware; })) {
    add(Kind::Firmware,
        fmt::format("the guest is in its firmware or boot loader (vCPU 0 at {:#x}, not in long "
                    "mode), and no Linux has run",
                    vcpus.front().pc));
  } else if (std::ranges::any_of(vcpus, [](auto& each) { return each.mode == Mode::Narrow; })) {
    add(Kind::NoLinux, "the guest's system has 32 bits: ringside knows Linux of x86-64 only");
  } else {
    add(Kind::NoLinux,
        "the vCPUs run something that is no Linux, or one that has only begun to "
        "boot: " +
            report_.kernel_trouble);
  }
}

void Judge::judge_crash_kernel() {
  if (!report_.crashed) return;
  const auto& [release, reason] = *report_.crashed;
  add(Kind::CrashKernel,
      fmt::format("the guest runs its crash kernel (kdump), Linux {}, since Linux {} crashed: {}",
                  report_.release, release, reason.empty() ? "its log does not say why" : reason));
}

void Judge::judge_panic() {
  if (!report_.panic) return;
  const std::string reason =
      report_.panic->reason.empty() ? "the log does not say why" : report_.panic->reason;
  add(Kind::Panicked, fmt::format("the kernel panicked on CPU {}: {}", report_.panic->cpu, reason));
}

void Judge::judge_interrupts() {
  if (report_.panic || report_.stopped_by) return;  // a panic halts the other CPUs like this
  for (const VcpuReport& vcpu : report_.vcpus) {
    const CpuReport* runs = cpu(vcpu.cpu);
    if (vcpu.mode != Mode::Kernel || vcpu.interrupts_on) continue;
    if (runs == nullptr || runs->is_idle || !runs->running) continue;
    const std::uint64_t off =
        std::max(vcpu.interrupts_off_for.value_or(0), runs->timer_overdue.value_or(0));
    if (off < kLong && !vcpu.interrupts_off_for && !vcpu.is_halted) continue;
    add(Kind::InterruptsOff,
        fmt::format("CPU {} {} with interrupts off for {} at least: {} in {}", runs->cpu,
                    vcpu.is_halted ? "has been halted" : "has run", duration_text(off),
                    name_of_task(runs->running->task), vcpu.where));
  }
}

/// Only of CPUs that would take the interrupt; CPUs with interrupts off are named already.
void Judge::judge_timers() {
  if (report_.panic || report_.stopped_by) return;
  for (const CpuReport& each : report_.cpus) {
    if (!each.is_online || each.timer_overdue.value_or(0) < kLong) continue;
    const auto vcpu = std::ranges::find_if(
        report_.vcpus, [&](const VcpuReport& one) { return one.cpu == each.cpu; });
    const bool is_known = vcpu != report_.vcpus.end();
    if (is_known ? !vcpu->interrupts_on : !each.is_idle) continue;
    const std::string_view beginning =
        report_.clock_stands ? "the guest's clock stands still, as no timer interrupts come: " : "";
    const std::string does = each.is_idle   ? "is idle"
                             : each.running ? "runs " + name_of_task(each.running->task)
                                            : std::string("runs");
    add(Kind::TimerLost,
        fmt::format("{}CPU {} {}{}, and its next timer is overdue for {} at least", beginning,
                    each.cpu, does, is_known ? " with interrupts on" : "",
                    duration_text(*each.timer_overdue)));
  }
}

void Judge::judge_calls() {
  if (report_.panic || report_.stopped_by) return;
  for (const CpuReport& each : report_.cpus) {
    if (!each.call_waits) continue;
    add(Kind::CallLost,
        fmt::format(
            "CPU {} is idle, and what another CPU has asked of it{} has waited in its queue "
            "for {} at least: the interrupt between CPUs does not come",
            each.cpu, each.called_function.empty() ? "" : " (" + each.called_function + ")",
            duration_text(*each.call_waits)));
  }
}

/// Each task waits for at most one lock, so cycles are found by following owners.
void Judge::judge_lock_cycles() {
  std::set<std::uint64_t> told;
  for (const TaskReport& start : report_.waiting) {
    std::vector<const TaskReport*> chain;
    const TaskReport* at = &start;
    while (at != nullptr && at->wait && at->wait->what == Wait::For::Lock && at->wait->owner != 0 &&
           std::ranges::find(chain, at) == chain.end()) {
      chain.push_back(at);
      at = report_of(at->wait->owner_task);
    }
    const auto entry = std::ranges::find(chain, at);
    if (entry == chain.end() || at->wait->is_read_held) continue;
    const bool is_new = std::all_of(entry, chain.end(), [&](const TaskReport* each) {
      return told.insert(each->task.address.raw()).second;
    });
    if (!is_new) continue;
    std::string text = "tasks wait for each other's locks: ";
    for (auto each = entry; each != chain.end(); ++each) {
      text += fmt::format("{} waits for {}, ", name_of_task((*each)->task), (*each)->wait->owner);
    }
    text.resize(text.size() - 2);
    add(Kind::LockCycle, std::move(text));
  }
}

void Judge::judge_frozen() {
  for (const FilesystemReport& each : report_.frozen) {
    const auto held = std::ranges::count_if(report_.waiting, [&](const TaskReport& task) {
      return task.wait && task.wait->what == Wait::For::FrozenFilesystem &&
             task.wait->filesystem == each.device;
    });
    if (held == 0) continue;
    add(Kind::FrozenFilesystem,
        fmt::format(
            "the {} file system on {} is frozen (FIFREEZE, fsfreeze), and {} to write to it",
            each.type, each.device,
            counted(static_cast<std::size_t>(held), "task waits", "tasks wait")));
  }
}

void Judge::judge_storage() {
  for (const DiskReport& disk : report_.disks) {
    if (!disk.hangs()) continue;
    std::string text =
        fmt::format("storage does not answer: {} has {} in flight, the oldest for {}", disk.name,
                    counted(disk.in_flight, "request", "requests"), duration_text(*disk.oldest));
    const std::size_t waiting = count_waits(Wait::For::Io);
    if (waiting != 0)
      text += fmt::format("; {} for I/O", counted(waiting, "task waits", "tasks wait"));
    for (const std::string& drive : report_.throttled_drives) text += "; " + drive;
    add(Kind::Storage, std::move(text));
  }
}

/// The tasks at the end of chains of locks that others wait for.
void Judge::judge_lock_holders() {
  std::map<std::uint64_t, std::size_t> behind;  // by task
  for (const TaskReport& waiter : report_.waiting) {
    if (!waits_long(waiter)) continue;
    const TaskReport* at = &waiter;
    std::set<const TaskReport*> seen;
    while (at != nullptr && at->wait && at->wait->what == Wait::For::Lock && at->wait->owner != 0) {
      if (!seen.insert(at).second) break;  // a cycle, told elsewhere
      at = report_of(at->wait->owner_task);
    }
    if (at != nullptr && at != &waiter && !seen.contains(at)) ++behind[at->task.address.raw()];
  }
  for (const auto& [task, count] : behind) {
    const TaskReport* holder = report_of(GuestVirt(task));
    add(Kind::LockHolder, fmt::format("{} for locks that {} holds, which {}",
                                      counted(count, "task waits", "tasks wait"),
                                      name_of_task(holder->task), what_it_does(*holder)));
  }
}

void Judge::judge_memory() {
  const MemoryReport& memory = report_.memory;
  const auto victim = std::ranges::find_if(
      report_.waiting, [](const TaskReport& each) { return each.task.is_oom_victim; });
  const bool low = memory.free && memory.reserve && *memory.free < *memory.reserve;
  const std::size_t waiting = count_waits(Wait::For::Memory);
  const bool killed = memory.last_kill_age.value_or(UINT64_MAX) < kRecentKill;
  if (victim == report_.waiting.end() && waiting == 0 && !low && !killed) return;
  std::string text = "the guest is out of memory";
  if (memory.free && memory.total) {
    text += fmt::format(": {} of {} MiB are free", *memory.free >> 20, *memory.total >> 20);
  }
  if (memory.oom_kills.value_or(0) != 0) {
    text +=
        fmt::format(", {} were killed for it", counted(*memory.oom_kills, "process", "processes"));
  }
  if (killed) {
    text += fmt::format(", the last, {}, {} ago", memory.last_killed,
                        duration_text(*memory.last_kill_age));
  }
  if (waiting != 0)
    text += fmt::format(", {} for it", counted(waiting, "task waits", "tasks wait"));
  if (victim != report_.waiting.end()) {
    text += fmt::format(", and {} was to be killed and cannot end", name_of_task(victim->task));
  }
  add(Kind::OutOfMemory, std::move(text));
}

void Judge::judge_soft_lockups() {
  if (!report_.watchdog_threshold || report_.panic) return;
  for (const CpuReport& each : report_.cpus) {
    if (each.is_idle || !each.running) continue;
    if (each.watchdog_behind.value_or(0) < *report_.watchdog_threshold) continue;
    add(Kind::SoftLockup, fmt::format("CPU {} has let nobody else run for {}: {}{}", each.cpu,
                                      duration_text(*each.watchdog_behind),
                                      name_of_task(each.running->task), where_is(each)));
  }
}

/// " in FUNCTION" of a CPU that runs kernel code.
std::string Judge::where_is(const CpuReport& runs) const {
  for (const VcpuReport& vcpu : report_.vcpus) {
    if (vcpu.cpu == runs.cpu && vcpu.mode == Mode::Kernel && !vcpu.where.empty()) {
      return " in " + vcpu.where;
    }
  }
  return {};
}

/// A task that takes interrupts and does not give up its CPU, before the watchdog complains. Only
/// kernel code can do that: a task in user mode is preempted.
void Judge::judge_kernel_spin() {
  if (report_.panic || report_.stopped_by) return;
  for (const CpuReport& each : report_.cpus) {
    if (each.is_idle || !each.running || each.running->task.is_realtime()) continue;
    const std::string where = where_is(each);
    if (where.empty() || each.running->task.since.value_or(0) < kLong) continue;
    const bool told = std::ranges::any_of(causes_, [](const Cause& cause) {
      return cause.kind == Kind::SoftLockup || cause.kind == Kind::InterruptsOff;
    });
    const auto starving = std::ranges::count_if(
        report_.starving, [&](const TaskReport& task) { return task.task.cpu == each.cpu; });
    if (told || starving == 0) continue;
    add(Kind::KernelSpin,
        fmt::format("{} does not leave CPU {}{}{}, and {} for that CPU",
                    name_of_task(each.running->task), each.cpu, for_time(each.running->task.since),
                    where,
                    counted(static_cast<std::size_t>(starving), "task waits", "tasks wait")));
  }
}

void Judge::judge_realtime() {
  for (const CpuReport& each : report_.cpus) {
    if (!each.running || each.is_idle || !each.running->task.is_realtime()) continue;
    const auto starving = std::ranges::count_if(
        report_.starving, [&](const TaskReport& task) { return task.task.cpu == each.cpu; });
    // Since 6.12 other tasks still get a twentieth of each second, so nobody starves for long.
    const bool keeps = each.running->task.since.value_or(0) >= kLongRealtime;
    const std::uint64_t others = each.queue_length.value_or(1) - 1;
    if (starving == 0 && (!keeps || others == 0 || others >> 63 != 0)) continue;
    const auto wait = starving != 0 ? static_cast<std::size_t>(starving) : others;
    add(Kind::RealtimeSpin,
        fmt::format("real-time task {} keeps CPU {}{}, and {} for that CPU",
                    name_of_task(each.running->task), each.cpu, for_time(each.running->task.since),
                    counted(wait, "task waits", "tasks wait")));
  }
}

void Judge::judge_rcu() {
  if (!report_.rcu || report_.panic || report_.rcu->age.value_or(0) < kLongGracePeriod) return;
  std::string text =
      fmt::format("RCU's grace period has lasted for {}", duration_text(*report_.rcu->age));
  if (!report_.rcu->cpus.empty()) {
    text += fmt::format(": it waits for CPU {}", fmt::join(report_.rcu->cpus, ", "));
  } else if (report_.rcu->waits_for_tasks) {
    text += ": it waits for readers that were preempted";
  }
  add(Kind::RcuStall, std::move(text));
}

/// The kernel gives work only to these.
std::size_t Judge::online_cpus() const {
  return static_cast<std::size_t>(std::ranges::count_if(report_.cpus, &CpuReport::is_online));
}

void Judge::judge_busy() {
  const std::size_t online = online_cpus();
  if (report_.panic || report_.stopped_by || online == 0) return;
  std::vector<std::string> busy;
  std::size_t long_ones = 0;
  for (const CpuReport& each : report_.cpus) {
    if (each.is_idle || !each.running) continue;
    const Task& task = each.running->task;
    const auto vcpu = std::ranges::find_if(
        report_.vcpus, [&](const VcpuReport& one) { return one.cpu == each.cpu; });
    const bool in_user = vcpu != report_.vcpus.end() && vcpu->mode == Mode::User;
    if (task.since.value_or(0) >= kLong) ++long_ones;
    busy.push_back(fmt::format("{} on CPU {}{}{}", name_of_task(task), each.cpu,
                               for_time(task.since), in_user ? ", in user mode" : ""));
  }
  const bool all = busy.size() >= online;
  if (!all && long_ones == 0) return;
  if (!all && report_.vcpus.empty() && busy.empty()) return;
  const std::string whole = online == 1 ? std::string("the CPU is")
                            : all       ? fmt::format("all {} CPUs are", busy.size())
                                        : fmt::format("{} of {} CPUs", busy.size(), online);
  std::uint64_t queued = 0;
  for (const CpuReport& each : report_.cpus) {
    queued += std::min<std::uint64_t>(each.queue_length.value_or(0), kMostQueued);
  }
  const bool is_crowded = all && queued >= kCrowd * busy.size();
  add(Kind::Busy, fmt::format("{} busy{}: {}", whole,
                              is_crowded ? fmt::format(", and {} tasks want to run", queued) : "",
                              fmt::join(busy, "; ")));
}

void Judge::judge_stuck() {
  const auto stuck = std::ranges::count_if(report_.waiting, waits_long);
  if (stuck == 0) return;
  const TaskReport& longest = report_.waiting.front();
  add(Kind::TasksStuck,
      fmt::format("{} in state D; the longest is {}, which {}",
                  counted(static_cast<std::size_t>(stuck), "task is", "tasks are"),
                  name_of_task(longest.task), what_it_does(longest)));
}

void Judge::judge_idle() {
  const std::size_t online = online_cpus();
  if (!causes_.empty() || online == 0) return;
  const bool all = std::ranges::all_of(
      report_.cpus, [](const CpuReport& each) { return each.is_idle || !each.is_online; });
  if (all) {
    add(Kind::AllIdle,
        fmt::format("nothing hangs: {}, and no task waits for a disk or a lock; the guest waits "
                    "for work from outside",
                    online == 1 ? "the CPU is idle" : fmt::format("all {} CPUs are idle", online)));
  }
}

std::vector<Cause> Judge::run() {
  judge_host();
  judge_stopped();
  if (report_.release.empty()) {
    judge_without_linux();
    return std::move(causes_);
  }
  judge_crash_kernel();
  judge_panic();
  judge_interrupts();
  judge_timers();
  judge_calls();
  judge_lock_cycles();
  judge_frozen();
  judge_storage();
  judge_memory();
  judge_realtime();
  judge_soft_lockups();
  judge_kernel_spin();
  judge_lock_holders();
  judge_rcu();
  judge_busy();
  if (causes_.empty()) judge_stuck();
  judge_idle();
  if (causes_.empty()) {
    add(Kind::Unremarkable, report_.has_types
                                ? "nothing that hangs was seen"
                                : "nothing that hangs was seen by the vCPUs, the symbols and the "
                                  "log alone: --types FILE shows the tasks, too");
  }
  return std::move(causes_);
}

}  // namespace

std::vector<Cause> diagnose(const HealthReport& report) {
  return Judge(report).run();
}

std::string duration_text(std::uint64_t nanoseconds) {
  if (nanoseconds < kSecond) return fmt::format("{} ms", nanoseconds / 1'000'000);
  const auto seconds = static_cast<double>(nanoseconds) / kSecond;
  return seconds < 600 ? fmt::format("{:.1f} s", seconds) : fmt::format("{:.0f} min", seconds / 60);
}

std::string_view name_of(Cause::Kind kind) {
  switch (kind) {
    case Kind::Host: return "host";
    case Kind::CrashKernel: return "crash-kernel";
    case Kind::Stopped: return "stopped";
    case Kind::NotStarted: return "not-started";
    case Kind::Firmware: return "firmware";
    case Kind::NoLinux: return "no-linux";
    case Kind::Panicked: return "panicked";
    case Kind::InterruptsOff: return "interrupts-off";
    case Kind::TimerLost: return "timer-lost";
    case Kind::CallLost: return "call-lost";
    case Kind::LockCycle: return "lock-cycle";
    case Kind::FrozenFilesystem: return "frozen-filesystem";
    case Kind::Storage: return "storage";
    case Kind::LockHolder: return "lock-holder";
    case Kind::OutOfMemory: return "out-of-memory";
    case Kind::SoftLockup: return "soft-lockup";
    case Kind::KernelSpin: return "kernel-spin";
    case Kind::RealtimeSpin: return "realtime-spin";
    case Kind::RcuStall: return "rcu-stall";
    case Kind::Busy: return "busy";
    case Kind::TasksStuck: return "tasks-stuck";
    case Kind::AllIdle: return "all-idle";
    case Kind::Unremarkable: return "unremarkable";
  }
  return "unremarkable";
}

}  // namespace ringside::guest_linux
