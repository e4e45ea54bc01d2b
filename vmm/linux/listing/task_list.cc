// In this file, top to bottom: letters, memory, control groups, command lines, one task, the lists.
#include "vmm/linux/listing/task_list.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "vmm/arch/arch.h"
#include "vmm/linux/constants.h"
#include "vmm/linux/health/clocks.h"

namespace ringside::guest_linux {
namespace {

constexpr std::size_t kMostTasks = 1 << 18;
constexpr std::size_t kRssKinds = 4;        // NR_MM_COUNTERS
constexpr std::size_t kMostCommand = 4096;  // bytes of a command line
constexpr std::size_t kMostGroupDepth = 64, kMostGroupName = 256;

// include/linux/sched.h, fs/proc/array.c; the same from 5.10 to 6.12.
constexpr std::uint64_t kUninterruptible = 2, kIdleState = 0x402, kRtLockWait = 0x1000,
                        kFrozen = 0x8000, kReported = 0x7f;
constexpr std::uint64_t kKernelThread = 0x20'0000;  // PF_KTHREAD
constexpr std::int32_t kDefaultPriority = 120;      // DEFAULT_PRIO: nice is the distance from it

char state_letter(std::uint64_t state, std::uint64_t exit_state) {
  constexpr std::string_view kLetters = "RSDTtXZP";
  if ((state & kIdleState) == kIdleState) return 'I';
  // A real-time kernel's spin lock, and a frozen task.
  if ((state & (kRtLockWait | kFrozen)) != 0) state = kUninterruptible;
  return kLetters[static_cast<std::size_t>(std::bit_width((state | exit_state) & kReported))];
}

class TaskReader {
 public:
  TaskReader(const ListedGuest& guest, Wanted& wanted);
  Result<Listing<TaskRow>> list(TaskDetail detail);

 private:
  void add_process(GuestVirt leader, TaskDetail detail);
  TaskRow row(const StructCopy& task) const;
  void complete(TaskRow& row, const StructCopy& task);
  std::optional<std::uint64_t> resident(GuestVirt mm);
  std::int64_t pages(const StructCopy& mm, std::int64_t kind);
  std::string command(GuestVirt mm);
  std::string process_bytes(GuestVirt table, std::uint64_t from, std::uint64_t size) const;
  std::optional<std::string> control_group(GuestVirt set);
  std::optional<std::string> group_path(GuestVirt group) const;

  const ListedGuest& guest_;
  const KernelView& view_;
  Shape task_, signal_, cred_, mm_;
  GuestVirt init_task_;
  Field tasks_, pid_, tgid_, state_, exit_state_, flags_, comm_, signal_at_, thread_node_, runtime_,
      mm_at_, real_cred_, euid_, thread_head_, parent_, start_;
  std::optional<Field> priority_, cpu_, files_, fs_, cgroups_, thread_count_, dead_runtime_;
  std::optional<Field> rss_atomic_, rss_percpu_, percpu_count_, percpu_counters_;
  std::uint64_t counter_size_;
  std::vector<std::int64_t> rss_kinds_;
  std::optional<Field> arg_start_, arg_end_, env_end_, pgd_;
  std::optional<Field> default_group_, subsystems_, subsystem_group_, group_node_, node_name_,
      node_parent_;
  std::uint32_t subsystem_count_;

  std::optional<std::uint64_t> now_;
  std::size_t parts_left_ = 1 << 24;  // per-CPU counters of all processes together
  Walk walk_;
  Listing<TaskRow> found_;
  TextBudget texts_;
  ListEnd threads_end_ = ListEnd::Whole;
  std::unordered_map<std::uint64_t, std::optional<std::string>> groups_;  // by struct css_set
};

TaskReader::TaskReader(const ListedGuest& guest, Wanted& wanted)
    : guest_(guest),
      view_(guest.view),
      task_(wanted, "task_struct"),
      signal_(wanted, "signal_struct"),
      cred_(wanted, "cred"),
      mm_(wanted, "mm_struct"),
      walk_(guest.view, kMostTasks) {
  init_task_ = wanted.symbol("init_task");
  tasks_ = task_.need(wanted, "tasks");
  pid_ = task_.need(wanted, "pid");
  tgid_ = task_.need(wanted, "tgid");
  state_ = task_.need(wanted, {"__state", "state"});
  exit_state_ = task_.need(wanted, "exit_state");
  flags_ = task_.need(wanted, "flags");
  comm_ = task_.need(wanted, {"comm"}, kCommBytes);
  signal_at_ = task_.need(wanted, "signal");
  thread_node_ = task_.need(wanted, "thread_node");
  runtime_ = task_.need(wanted, "se.sum_exec_runtime");
  start_ = task_.need(wanted, "start_time");
  mm_at_ = task_.need(wanted, "mm");
  real_cred_ = task_.need(wanted, "real_cred");
  parent_ = task_.need(wanted, "real_parent");
  priority_ = task_.want("static_prio");
  cpu_ = task_.want({"thread_info.cpu", "cpu"});
  files_ = task_.want("files");
  fs_ = task_.want("fs");
  cgroups_ = task_.want("cgroups");
  euid_ = cred_.need(wanted, "euid.val");
  thread_head_ = signal_.need(wanted, "thread_head");
  thread_count_ = signal_.want("nr_threads");
  dead_runtime_ = signal_.want("sum_sched_runtime");
  arg_start_ = mm_.want("arg_start");
  arg_end_ = mm_.want("arg_end");
  env_end_ = mm_.want("env_end");
  pgd_ = mm_.want("pgd");
  rss_atomic_ = mm_.want({"rss_stat.count"}, kRssKinds * 8);
  rss_percpu_ = mm_.want({"rss_stat"}, kRssKinds * view_.size_of("percpu_counter"));
  percpu_count_ = view_.field("percpu_counter", "count");
  percpu_counters_ = view_.field("percpu_counter", "counters");
  counter_size_ = view_.size_of("percpu_counter");
  for (const std::string_view name : {"MM_FILEPAGES", "MM_ANONPAGES", "MM_SHMEMPAGES"}) {
    const auto kind = view_.enumerator(name);
    if (kind && *kind >= 0 && *kind < std::int64_t{kRssKinds}) rss_kinds_.push_back(*kind);
  }
  default_group_ = view_.field("css_set", "dfl_cgrp");
  subsystems_ = view_.field("css_set", "subsys");
  subsystem_count_ = std::min(view_.length_of("css_set", "subsys").value_or(0), 32U);
  subsystem_group_ = view_.field("cgroup_subsys_state", "cgroup");
  group_node_ = view_.field("cgroup", "kn");
  node_name_ = view_.field("kernfs_node", "name");
  node_parent_ = view_.field("kernfs_node", {"parent", "__parent"});
}

std::int64_t TaskReader::pages(const StructCopy& mm, std::int64_t kind) {
  const auto of_kind = [&](const std::optional<Field>& member, const std::optional<Field>& field,
                           std::uint64_t size) {
    Field found = *field;
    found.offset +=
        member->offset + static_cast<std::uint32_t>(static_cast<std::uint64_t>(kind) * size);
    return found;
  };
  if (rss_atomic_) {
    return static_cast<std::int64_t>(mm.number(of_kind(rss_atomic_, Field{.bytes = 8}, 8)));
  }
  std::uint64_t sum = mm.number(of_kind(rss_percpu_, percpu_count_, counter_size_));
  const auto parts = mm.pointer(of_kind(rss_percpu_, percpu_counters_, counter_size_));
  if (!parts) return static_cast<std::int64_t>(sum);
  for (const std::uint64_t base : view_.kernel().percpu_bases()) {
    if (parts_left_ == 0) break;
    --parts_left_;
    const auto part = view_.load<std::int32_t>(parts->wrapping_add(base));
    sum += static_cast<std::uint64_t>(std::int64_t{part.value_or(0)});
  }
  return static_cast<std::int64_t>(sum);
}

std::optional<std::uint64_t> TaskReader::resident(GuestVirt at) {
  const bool has_parts = rss_percpu_ && percpu_count_ && percpu_counters_ && counter_size_ != 0;
  const auto mm = mm_.copy(at);
  if (!mm || rss_kinds_.empty() || (!rss_atomic_ && !has_parts)) return std::nullopt;
  std::uint64_t sum = 0;
  for (const std::int64_t kind : rss_kinds_) {
    // A counter may be below zero for a moment.
    sum += static_cast<std::uint64_t>(std::max<std::int64_t>(pages(*mm, kind), 0));
  }
  return sum * arch::kPageSize;
}

/// Of a kernfs node and those above it; the root is "/".
std::optional<std::string> TaskReader::group_path(GuestVirt group) const {
  auto node = view_.pointer(group, group_node_);
  if (!node || !node_name_ || !node_parent_) return std::nullopt;
  std::string path;
  for (std::size_t depth = 0; depth < kMostGroupDepth; ++depth) {
    const auto parent = view_.pointer(*node, node_parent_);
    if (!parent) return path.empty() ? "/" : path;
    const auto name = view_.pointer(*node, node_name_);
    if (!name) return std::nullopt;
    path.insert(0, view_.raw_text(*name, kMostGroupName)).insert(0, 1, '/');
    node = parent;
  }
  return "..." + path;
}

std::optional<std::string> TaskReader::control_group(GuestVirt set) {
  if (const auto known = groups_.find(set.raw()); known != groups_.end()) return known->second;
  std::optional<std::string> path;
  if (const auto group = view_.pointer(set, default_group_)) path = group_path(*group);
  for (std::uint32_t i = 0; path == "/" && subsystems_ && i < subsystem_count_; ++i) {
    const GuestVirt slot = set.wrapping_add(subsystems_->offset).wrapping_add(i * std::uint64_t{8});
    const auto state = view_.load<std::uint64_t>(slot);
    const auto group =
        state && *state != 0 ? view_.pointer(GuestVirt(*state), subsystem_group_) : std::nullopt;
    if (const auto other = group ? group_path(*group) : std::nullopt) path = *other;
  }
  if (path && !texts_.take(path->size())) path.reset();
  groups_.emplace(set.raw(), path);
  return path;
}

/// Up to the first page that is not in memory.
std::string TaskReader::process_bytes(GuestVirt table, std::uint64_t from,
                                      std::uint64_t size) const {
  std::string all;
  while (all.size() < size) {
    const std::uint64_t at = from + all.size();
    std::string piece(std::min(size - all.size(), arch::kPageSize - at % arch::kPageSize), '\0');
    if (!guest_.read_process(table, GuestVirt(at), std::as_writable_bytes(std::span(piece)))) break;
    all += piece;
  }
  return all;
}

/// A program may have written its title over its arguments: then no NUL ends them, and the title
/// may go on in what was the environment.
std::string TaskReader::command(GuestVirt at) {
  const auto mm = mm_.copy(at);
  if (!mm || !guest_.read_process) return {};
  const auto table = mm->pointer(pgd_);
  const std::uint64_t begin = mm->number(arg_start_), end = mm->number(arg_end_);
  if (!table || begin == 0 || end <= begin) return {};
  std::uint64_t size = std::min<std::uint64_t>(end - begin, kMostCommand);
  std::string text = process_bytes(*table, begin, size);
  if (text.size() == end - begin && text.back() != '\0' && mm->number(env_end_) > end) {
    size = std::min<std::uint64_t>(mm->number(env_end_) - begin, kMostCommand);
    text = process_bytes(*table, begin, size);
    text.resize(std::min(text.find('\0'), text.size()));
  }
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return texts_.take(text.size()) ? text : std::string();
}

TaskRow TaskReader::row(const StructCopy& task) const {
  TaskRow row;
  row.task = task.address();
  row.process = static_cast<std::int64_t>(task.number(tgid_));
  row.thread = static_cast<std::int64_t>(task.number(pid_));
  row.state = state_letter(task.number(state_), task.number(exit_state_));
  row.is_kernel_thread = (task.number(flags_) & kKernelThread) != 0;
  row.cpu_time = task.number(runtime_);
  row.started = task.number(start_);
  row.name = task.text(comm_, kCommBytes);
  if (now_ && row.started <= *now_) row.age = *now_ - row.started;
  if (priority_) row.nice = static_cast<std::int32_t>(task.number(priority_)) - kDefaultPriority;
  row.last_cpu = static_cast<std::uint32_t>(task.number(cpu_));
  row.files = task.pointer(files_);
  row.paths = task.pointer(fs_);
  row.memory = row.is_kernel_thread ? std::nullopt : task.pointer(mm_at_);
  return row;
}

/// The facts that lie in other structures.
void TaskReader::complete(TaskRow& row, const StructCopy& task) {
  const auto parent = task.pointer(parent_);
  row.parent = parent ? static_cast<std::int64_t>(view_.value(*parent, tgid_).value_or(0)) : 0;
  const auto cred = task.pointer(real_cred_);
  const auto ids = cred ? cred_.copy(*cred) : std::nullopt;
  if (ids) row.uid = static_cast<std::uint32_t>(ids->number(euid_));
  if (row.memory) row.resident = resident(*row.memory);
}

void TaskReader::add_process(GuestVirt leader, TaskDetail detail) {
  const auto first = task_.copy(leader);
  if (!first) {
    threads_end_ = ListEnd::Unreadable;
    return;
  }
  TaskRow process = row(*first);
  complete(process, *first);
  if (detail != TaskDetail::ProcessesBrief) {
    if (process.memory) process.command = command(*process.memory);
    const auto set = first->pointer(cgroups_);
    if (set) process.control_group = control_group(*set);
  }
  const auto signal_at = first->pointer(signal_at_);
  const auto signal = signal_at ? signal_.copy(*signal_at) : std::nullopt;
  if (!signal) {
    found_.rows.push_back(std::move(process));
    return;
  }
  process.threads = static_cast<std::uint32_t>(signal->number(thread_count_));
  std::uint64_t time = signal->number(dead_runtime_);
  std::vector<TaskRow> threads;
  const ListEnd end = walk_.circular(signal->place(thread_head_), [&](GuestVirt node) {
    const GuestVirt at = node.wrapping_sub(thread_node_.offset);
    const auto copy = at == leader ? first : task_.copy(at);
    if (!copy) return false;
    TaskRow thread = row(*copy);
    if (thread.process != process.process) return false;  // it was freed, and is another's now
    time += thread.cpu_time;
    if (detail != TaskDetail::Threads) return true;
    complete(thread, *copy);
    thread.threads = process.threads;
    thread.command = process.command;
    thread.control_group = process.control_group;
    threads.push_back(std::move(thread));
    return true;
  });
  if (end != ListEnd::Whole) threads_end_ = end == ListEnd::Stopped ? ListEnd::Unreadable : end;
  // A process that has ended is in the list of processes until its parent has heard of it, but has
  // no threads.
  if (detail == TaskDetail::Threads && !threads.empty()) {
    std::ranges::move(threads, std::back_inserter(found_.rows));
    return;
  }
  process.cpu_time = std::max(time, process.cpu_time);
  found_.rows.push_back(std::move(process));
}

Result<Listing<TaskRow>> TaskReader::list(TaskDetail detail) {
  Clocks clocks(view_);
  clocks.read();
  now_ = std::max(clocks.now(), clocks.monotonic());
  Walk processes(view_, kMostTasks);
  const ListEnd end =
      processes.circular(init_task_.wrapping_add(tasks_.offset), [&](GuestVirt node) {
        add_process(node.wrapping_sub(tasks_.offset), detail);
        return found_.rows.size() < kMostTasks;
      });
  if (const auto note = cut_note("the list of processes", end)) found_.notes.push_back(*note);
  if (const auto note = cut_note("the list of threads of a process", threads_end_)) {
    found_.notes.push_back(*note);
  }
  if (parts_left_ == 0) {
    found_.notes.emplace_back("resident memory is not exact: there are too many counters");
  }
  if (texts_.was_short()) {
    found_.notes.emplace_back("command lines are left out: there are more than 64 MiB of them");
  }
  std::ranges::stable_sort(found_.rows, {},
                           [](const TaskRow& row) { return std::pair(row.process, row.thread); });
  return std::move(found_);
}

}  // namespace

Result<Listing<TaskRow>> list_tasks(const ListedGuest& guest, TaskDetail detail) {
  return read_until_whole<TaskRow>(guest, [&]() -> Result<Listing<TaskRow>> {
    Wanted wanted(guest.view);
    TaskReader reader(guest, wanted);
    TRY(wanted.check("processes"));
    return reader.list(detail);
  });
}

}  // namespace ringside::guest_linux
