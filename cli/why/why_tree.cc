// In this file, top to bottom: pieces, tasks, CPUs, the kernel's state, the whole.
#include <fmt/format.h>

#include <string>

#include "cli/why/why.h"

namespace ringside::cli {
namespace {

using namespace guest_linux;

/// A field only where it is known.
template <class T>
void put(Tree& tree, const char* name, const std::optional<T>& value) {
  if (value) tree[name] = *value;
}

std::string address_text(std::uint64_t address) {
  return fmt::format("{:#x}", address);
}

Tree stack_tree(const std::vector<Frame>& stack) {
  Tree frames = Tree::array();
  for (const Frame& frame : stack) {
    frames.push_back({{"address", address_text(frame.address)}, {"symbol", frame.text}});
  }
  return frames;
}

std::string_view purpose_name(Wait::For what) {
  switch (what) {
    case Wait::For::Lock: return "lock";
    case Wait::For::Io: return "io";
    case Wait::For::FrozenFilesystem: return "frozen-filesystem";
    case Wait::For::Completion: return "completion";
    case Wait::For::Memory: return "memory";
    case Wait::For::Unknown: break;
  }
  return "unknown";
}

std::string_view lock_kind_name(LockKind kind) {
  switch (kind) {
    case LockKind::Mutex: return "mutex";
    case LockKind::RwSemaphore: return "rw_semaphore";
    case LockKind::PercpuRwSemaphore: return "percpu_rw_semaphore";
    case LockKind::SpinLock: return "spin_lock";
  }
  return "unknown";
}

Tree wait_tree(const Wait& wait) {
  Tree tree = {{"for", purpose_name(wait.what)}};
  if (!wait.function.empty()) tree["function"] = wait.function;
  if (wait.what == Wait::For::FrozenFilesystem) tree["device"] = wait.filesystem;
  if (wait.what != Wait::For::Lock) return tree;
  Tree lock = {{"kind", lock_kind_name(wait.lock_kind)}};
  if (wait.lock.raw() != 0) lock["address"] = address_text(wait.lock.raw());
  if (!wait.lock_name.empty()) lock["name"] = wait.lock_name;
  if (wait.owner != 0) lock["owner"] = wait.owner;
  if (wait.is_read_held) lock["held_by_readers"] = true;
  tree["lock"] = std::move(lock);
  return tree;
}

Tree task_tree(const TaskReport& report) {
  const Task& task = report.task;
  Tree tree = {{"pid", task.pid},
               {"process", task.process},
               {"name", task.name},
               {"state", std::string(1, letter_of(task.state))}};
  put(tree, "cpu", task.cpu);
  put(tree, "since_ns", task.since);
  if (task.is_kernel_thread) tree["kernel_thread"] = true;
  if (task.is_realtime()) tree["realtime_priority"] = task.priority.value_or(0);
  if (task.is_oom_victim) tree["oom_victim"] = true;
  if (report.wait) tree["waits"] = wait_tree(*report.wait);
  if (!report.stack.empty()) tree["stack"] = stack_tree(report.stack);
  return tree;
}

Tree task_list(const std::vector<TaskReport>& tasks) {
  Tree list = Tree::array();
  for (const TaskReport& task : tasks) list.push_back(task_tree(task));
  return list;
}

std::string_view mode_name(VcpuReport::Mode mode) {
  switch (mode) {
    case VcpuReport::Mode::Kernel: return "kernel";
    case VcpuReport::Mode::User: return "user";
    case VcpuReport::Mode::Firmware: return "firmware";
    case VcpuReport::Mode::Narrow: return "32-bit";
    case VcpuReport::Mode::Crashed: return "crashed-kernel";
    case VcpuReport::Mode::Other: break;
  }
  return "other";
}

Tree vcpu_tree(const VcpuReport& vcpu) {
  Tree tree = {{"vcpu", vcpu.vcpu}, {"mode", mode_name(vcpu.mode)}, {"rip", address_text(vcpu.pc)}};
  put(tree, "cpu", vcpu.cpu);
  if (!vcpu.where.empty()) tree["symbol"] = vcpu.where;
  tree["interrupts_on"] = vcpu.interrupts_on;
  tree["halted"] = vcpu.is_halted;
  if (vcpu.has_not_begun) tree["not_begun"] = true;
  put(tree, "interrupts_off_ns", vcpu.interrupts_off_for);
  return tree;
}

Tree cpu_tree(const CpuReport& cpu) {
  Tree tree = {{"cpu", cpu.cpu}, {"online", cpu.is_online}, {"idle", cpu.is_idle}};
  put(tree, "run_queue", cpu.queue_length);
  put(tree, "realtime_tasks", cpu.realtime_tasks);
  put(tree, "timer_overdue_ns", cpu.timer_overdue);
  put(tree, "watchdog_behind_ns", cpu.watchdog_behind);
  put(tree, "call_waits_ns", cpu.call_waits);
  if (!cpu.called_function.empty()) tree["called_function"] = cpu.called_function;
  if (cpu.owes_quiescent_state) tree["rcu_waits"] = true;
  if (cpu.running) tree["running"] = task_tree(*cpu.running);
  return tree;
}

Tree memory_tree(const MemoryReport& memory) {
  Tree tree = Tree::object();
  put(tree, "total", memory.total);
  put(tree, "free", memory.free);
  put(tree, "reserve", memory.reserve);
  put(tree, "page_cache", memory.page_cache);
  put(tree, "anonymous", memory.anonymous);
  put(tree, "shared", memory.shared);
  put(tree, "dirty", memory.dirty);
  put(tree, "writeback", memory.writeback);
  put(tree, "unreclaimable_slab", memory.unreclaimable_slab);
  put(tree, "swap_total", memory.swap_total);
  put(tree, "swap_free", memory.swap_free);
  put(tree, "oom_kills", memory.oom_kills);
  if (!memory.last_killed.empty()) tree["last_killed"] = memory.last_killed;
  put(tree, "last_kill_age_ns", memory.last_kill_age);
  put(tree, "pressure_percent", memory.pressure);
  return tree;
}

Tree disk_tree(const DiskReport& disk) {
  Tree requests = Tree::array();
  for (const RequestReport& request : disk.requests) {
    Tree& tree = requests.emplace_back(Tree{
        {"operation", request.operation}, {"sector", request.sector}, {"bytes", request.bytes}});
    put(tree, "age_ns", request.age);
  }
  Tree tree = {{"name", disk.name}, {"in_flight", disk.in_flight}};
  put(tree, "accounted", disk.accounted);
  put(tree, "oldest_ns", disk.oldest);
  tree["requests"] = std::move(requests);
  return tree;
}

void put_kernel_state(Tree& tree, const HealthReport& report) {
  tree["memory_bytes"] = memory_tree(report.memory);
  tree["disks"] = Tree::array();
  for (const DiskReport& disk : report.disks) tree["disks"].push_back(disk_tree(disk));
  tree["frozen_filesystems"] = Tree::array();
  for (const FilesystemReport& each : report.frozen) {
    tree["frozen_filesystems"].push_back({{"device", each.device}, {"type", each.type}});
  }
  if (report.rcu) {
    Tree rcu = {{"in_grace_period", report.rcu->in_grace_period}};
    put(rcu, "age_ns", report.rcu->age);
    rcu["waits_for_cpus"] = report.rcu->cpus;
    rcu["waits_for_tasks"] = report.rcu->waits_for_tasks;
    tree["rcu"] = std::move(rcu);
  }
  put(tree, "soft_lockup_threshold_ns", report.watchdog_threshold);
  if (report.panic) tree["panic"] = {{"cpu", report.panic->cpu}, {"reason", report.panic->reason}};
  if (report.crashed) {
    tree["crashed_kernel"] = {{"release", report.crashed->release},
                              {"reason", report.crashed->reason}};
  }
  tree["log"] = Tree::array();
  for (const LogLine& line : report.log) {
    tree["log"].push_back({{"time_ns", line.time}, {"level", line.level}, {"text", line.text}});
  }
  tree["not_known"] = report.unknown;
}

}  // namespace

Tree health_tree(const std::string& machine, const HealthReport& report) {
  Tree tree = {{"machine", machine}};
  tree["causes"] = Tree::array();
  for (const Cause& cause : report.causes) {
    tree["causes"].push_back({{"kind", name_of(cause.kind)}, {"text", cause.text}});
  }
  tree["vcpus"] = Tree::array();
  for (const VcpuReport& vcpu : report.vcpus) tree["vcpus"].push_back(vcpu_tree(vcpu));
  put(tree, "stands_still", report.stopped_by);
  if (!report.held_back.empty()) tree["held_back"] = report.held_back;
  if (report.release.empty()) {
    tree["no_linux"] = report.kernel_trouble;
    tree["not_known"] = report.unknown;
    return Tree{{"why", std::move(tree)}};
  }
  tree["release"] = report.release;
  put(tree, "uptime_ns", report.uptime);
  if (report.clock_stands) tree["clock_stands"] = true;
  put(tree, "load", report.load);
  tree["cpus"] = Tree::array();
  for (const CpuReport& cpu : report.cpus) tree["cpus"].push_back(cpu_tree(cpu));
  if (report.has_types) tree["tasks"] = report.task_count;
  tree["waiting"] = task_list(report.waiting);
  tree["lock_holders"] = task_list(report.holders);
  tree["starving"] = task_list(report.starving);
  put_kernel_state(tree, report);
  return Tree{{"why", std::move(tree)}};
}

}  // namespace ringside::cli
