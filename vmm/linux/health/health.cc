// In this file, top to bottom: the pause, what waits, the rest, the order of it all.
#include "vmm/linux/health/health.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "vmm/linux/discovery/discover.h"
#include "vmm/linux/health/block_requests.h"
#include "vmm/linux/health/diagnosis.h"
#include "vmm/linux/health/kernel_log.h"
#include "vmm/linux/health/kernel_state.h"
#include "vmm/linux/health/lost_interrupt_watch.h"
#include "vmm/linux/health/vcpus.h"
#include "vmm/linux/health/waits.h"
#include "vmm/linux/kernel_memory.h"
#include "vmm/linux/stacks/stack_tables.h"
#include "vmm/linux/types/types_without_btf.h"

namespace ringside::guest_linux {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kLogLines = 20, kLogLookedAt = 400;
constexpr std::size_t kMostWaiting = 256, kMostStarving = 64;
constexpr std::chrono::milliseconds kSecondLook{50};

/// The kernel before a crash kernel, in its own memory.
struct Crashed {
  Crashed(const vmm::GuestMemory& memory, std::unique_ptr<Kernel> found)
      : kernel(std::move(found)), reader(memory, kernel->table()), view(*kernel, reader) {}
  std::unique_ptr<Kernel> kernel;
  vmm::PageTableReader reader;
  KernelView view;
};

class Examination {
 public:
  Examination(vmm::Machine& machine, Kernel& kernel, bool is_alive)
      : machine_(machine),
        is_alive_(is_alive),
        reader_(machine.memory(), kernel.table()),
        stacks_(load_stack_tables(reader_, kernel)),
        view_(kernel, reader_),
        clocks_(view_),
        tasks_(view_, clocks_, stacks_) {
    if (auto crashed = open_crashed_kernel(kernel)) {
      crashed_ = std::make_unique<Crashed>(machine.memory(), std::move(*crashed));
    }
  }

  Result<HealthReport> run();

 private:
  Result<void> look_at_cpus();
  Result<void> look_again();
  void look_at_tasks();
  void look_at_waiting(const Waits& waits);
  void look_at_holders(const Waits& waits);
  void look_at_kernel();
  void look_at_time();
  void look_at_crashed();
  bool is_reported(GuestVirt task) const;

  vmm::Machine& machine_;
  const bool is_alive_;
  vmm::PageTableReader reader_;
  StackTables stacks_;
  KernelView view_;
  Clocks clocks_;
  Tasks tasks_;
  std::unique_ptr<Crashed> crashed_;  // null: this is no crash kernel
  HealthReport report_;
};

/// The vCPUs of a machine, with what their registers say by themselves.
std::vector<VcpuReport> describe_vcpus(const VcpuRegisters& registers, const KernelView* view) {
  std::vector<VcpuReport> vcpus;
  for (const auto& [vcpu, each] : registers.known) {
    vcpus.push_back(describe_vcpu(vcpu, each, view));
  }
  return vcpus;
}

Result<void> Examination::look_at_cpus() {
  vmm::PausedMachine paused = TRY(vmm::PausedMachine::pause(machine_));
  const VcpuRegisters registers = read_registers(paused);
  reader_.forget();  // the guest may have mapped anew while it ran
  clocks_.read();
  report_.vcpus = describe_vcpus(registers, &view_);
  for (VcpuReport& vcpu : report_.vcpus) {
    const Registers& its = registers.known.at(vcpu.vcpu);
    if (!crashed_ || !runs_on(machine_.memory(), its, crashed_->kernel->table())) continue;
    vcpu = describe_vcpu(vcpu.vcpu, its, &crashed_->view);
    vcpu.mode = VcpuReport::Mode::Crashed;
  }
  report_.unknown = registers.unknown;
  report_.cpus = describe_cpus(view_, tasks_, registers, report_.vcpus);
  return {};
}

bool runs_without_interrupts(const VcpuReport& vcpu) {
  return vcpu.mode == VcpuReport::Mode::Kernel && !vcpu.interrupts_on && !vcpu.is_halted;
}

/// Every kernel has interrupts off now and then. One that takes no timer tick meanwhile has them
/// off for good.
Result<void> Examination::look_again() {
  if (!is_alive_ || std::ranges::none_of(report_.vcpus, runs_without_interrupts)) {
    return {};
  }
  const auto clock = view_.field("rq", "clock");
  const auto clock_of = [&](const VcpuReport& vcpu) {
    const auto queue = vcpu.cpu ? view_.percpu("runqueues", *vcpu.cpu) : std::nullopt;
    return view_.value(queue, clock);
  };
  std::vector<std::optional<std::uint64_t>> before;
  for (const VcpuReport& vcpu : report_.vcpus) before.push_back(clock_of(vcpu));
  const auto began = SteadyClock::now();
  std::this_thread::sleep_for(kSecondLook);
  vmm::PausedMachine paused = TRY(vmm::PausedMachine::pause(machine_));
  const VcpuRegisters registers = read_registers(paused);
  const auto apart = std::chrono::nanoseconds(SteadyClock::now() - began).count();
  for (std::size_t i = 0; i < report_.vcpus.size(); ++i) {
    VcpuReport& vcpu = report_.vcpus[i];
    const auto again = registers.known.find(vcpu.vcpu);
    if (again == registers.known.end()) continue;
    const VcpuReport now = describe_vcpu(vcpu.vcpu, again->second, &view_);
    if (!runs_without_interrupts(vcpu) || !runs_without_interrupts(now)) continue;
    if (before[i] && before[i] == clock_of(vcpu)) {
      vcpu.interrupts_off_for = static_cast<std::uint64_t>(apart);
    }
  }
  return {};
}

bool Examination::is_reported(GuestVirt task) const {
  const auto is_it = [&](const TaskReport& report) { return report.task.address == task; };
  return std::ranges::any_of(report_.waiting, is_it) ||
         std::ranges::any_of(report_.holders, is_it) ||
         std::ranges::any_of(report_.cpus, [&](const CpuReport& cpu) {
           return cpu.running && is_it(*cpu.running);
         });
}

void Examination::look_at_waiting(const Waits& waits) {
  for (const Task& task : tasks_.all()) {
    if (task.state == TaskState::Uninterruptible && !task.is_on_cpu) {
      report_.waiting.push_back({task, {}, {}});
    }
    const bool starves =
        task.state == TaskState::Running && !task.is_on_cpu && task.since.value_or(0) >= kLong;
    if (starves) report_.starving.push_back({task, {}, {}});
  }
  const auto longest_first = [](std::vector<TaskReport>& tasks, std::size_t most) {
    std::ranges::stable_sort(tasks, std::greater<>(),
                             [](const TaskReport& report) { return report.task.since; });
    if (tasks.size() > most) tasks.resize(most);
  };
  longest_first(report_.waiting, kMostWaiting);
  longest_first(report_.starving, kMostStarving);
  for (TaskReport& report : report_.waiting) {
    report.stack = tasks_.sleeping_stack(report.task);
    report.wait = waits.find(report.task, report.stack);
  }
}

void Examination::look_at_holders(const Waits& waits) {
  std::vector<GuestVirt> owners;
  for (const TaskReport& report : report_.waiting) {
    if (report.wait && report.wait->owner != 0) owners.push_back(report.wait->owner_task);
  }
  for (const GuestVirt owner : owners) {
    const Task* task = tasks_.find(owner);
    if (task == nullptr || is_reported(owner)) continue;
    TaskReport report{*task, {}, {}};
    if (!task->is_on_cpu) {
      report.stack = tasks_.sleeping_stack(*task);
      if (task->state != TaskState::Running) report.wait = waits.find(*task, report.stack);
    }
    report_.holders.push_back(std::move(report));
  }
}

void Examination::look_at_tasks() {
  tasks_.list();
  report_.task_count = tasks_.all().size();
  report_.tasks_complete = tasks_.are_complete();
  const Waits waits(view_, tasks_, report_.frozen);
  look_at_waiting(waits);
  look_at_holders(waits);
}

void Examination::look_at_kernel() {
  report_.memory = read_memory_state(view_);
  auto log = read_kernel_log(view_, kLogLookedAt);
  if (log) {
    report_.panic = read_panic(view_, *log);
    read_last_kill(*log, clocks_.now(), report_.memory);
    const std::size_t shown = std::min(log->size(), kLogLines);
    report_.log.assign(log->end() - static_cast<std::ptrdiff_t>(shown), log->end());
  } else {
    report_.unknown.push_back(log.error().message);
    report_.panic = read_panic(view_, {});
  }
  if (has_suspended(view_)) {
    report_.stopped_by = "it has suspended itself, and sleeps or is about to";
  } else if (is_suspended_to_idle(view_)) {
    report_.stopped_by =
        "it has suspended itself to idle (s2idle) until something wakes it: a key, or its power "
        "button (system_powerdown)";
  }
  report_.load = read_load(view_);
  report_.rcu = read_rcu(view_, clocks_);
  report_.watchdog_threshold = watchdog_threshold(view_);
  for (CpuReport& cpu : report_.cpus) {
    cpu.watchdog_behind = watchdog_behind(view_, clocks_, cpu.cpu);
    cpu.owes_quiescent_state =
        report_.rcu && std::ranges::find(report_.rcu->cpus, cpu.cpu) != report_.rcu->cpus.end();
  }
  BlockState block = BlockRequests(view_, clocks_).read();
  if (!block.known) report_.unknown.emplace_back("block requests: this kernel's types do not tell");
  report_.disks = std::move(block.disks);
  if (!clocks_.now()) report_.unknown.emplace_back("times: the run queues' clocks cannot be read");
  if (clocks_.now() && !clocks_.tick_frequency()) {
    report_.unknown.emplace_back("times in jiffies: their frequency cannot be told");
  }
  if (!report_.tasks_complete) {
    report_.unknown.emplace_back(has_kernel_types(view_.types())
                                     ? "tasks: their list is torn"
                                     : "tasks, their waits and locks: without types");
  }
}

void Examination::look_at_time() {
  for (CpuReport& cpu : report_.cpus) cpu.timer_overdue = clocks_.timer_overdue(cpu.cpu);
  if (!is_alive_ || report_.stopped_by || report_.panic) return;
  LostInterruptWatch(
      view_, clocks_, [this] { reader_.forget(); }, HostTime::real())
      .watch(report_);
}

void Examination::look_at_crashed() {
  if (!crashed_) return;
  report_.crashed = CrashedKernelReport{std::string(crashed_->kernel->release()), {}};
  const auto log = read_kernel_log(crashed_->view, kLogLookedAt);
  if (log) report_.crashed->reason = crash_reason(*log);
}

Result<HealthReport> Examination::run() {
  report_.release = view_.kernel().release();
  TRY(look_at_cpus());
  TRY(look_again());
  report_.uptime = clocks_.now();
  report_.frozen = read_frozen_filesystems(view_);
  look_at_tasks();
  look_at_kernel();
  look_at_crashed();
  look_at_time();
  return std::move(report_);
}

/// The report that registers alone allow.
Result<HealthReport> examine_vcpus(vmm::Machine& machine, std::string trouble) {
  HealthReport report;
  report.kernel_trouble = std::move(trouble);
  vmm::PausedMachine paused = TRY(vmm::PausedMachine::pause(machine));
  VcpuRegisters registers = read_registers(paused);
  report.vcpus = describe_vcpus(registers, nullptr);
  report.unknown = std::move(registers.unknown);
  return report;
}

}  // namespace

Result<HealthReport> examine(vmm::Machine& machine, Kernel* kernel, std::string trouble,
                             const ExamineOptions& options) {
  const bool is_alive = options.life == GuestSource::Runs && !options.stopped_by;
  HealthReport report = kernel == nullptr ? TRY(examine_vcpus(machine, std::move(trouble)))
                                          : TRY(Examination(machine, *kernel, is_alive).run());
  if (options.stopped_by) report.stopped_by = options.stopped_by;
  if (options.ask_drives && std::ranges::any_of(report.disks, &DiskReport::hangs)) {
    report.throttled_drives = options.ask_drives();
  }
  if (options.ask_host) report.held_back = options.ask_host();
  if (kernel != nullptr) {
    report.has_types = has_kernel_types(kernel->types());
    const auto omissions = kernel->take_omissions();
    report.unknown.insert(report.unknown.begin(), omissions.begin(), omissions.end());
  }
  report.unknown.insert(report.unknown.begin(), options.limits.begin(), options.limits.end());
  report.causes = diagnose(report);
  return report;
}

}  // namespace ringside::guest_linux
