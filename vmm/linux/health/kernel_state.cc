// In this file, top to bottom: signs of trouble, memory.
#include "vmm/linux/health/kernel_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "vmm/arch/arch.h"

namespace ringside::guest_linux {
namespace {

constexpr std::size_t kMostFilesystems = 65536;
constexpr std::uint32_t kMostRcuNodes = 4096;

}  // namespace

namespace {

/// Of the last panic that the log tells; empty: of none.
std::string panic_reason(const std::vector<LogLine>& log) {
  constexpr std::string_view kWords = "Kernel panic - not syncing: ";
  std::string reason;
  for (const LogLine& line : log) {
    const std::size_t at = line.text.find(kWords);
    if (at == std::string::npos || line.text.starts_with("---[")) continue;
    reason = line.text.substr(at + kWords.size());
  }
  return reason;
}

}  // namespace

/// An oops starts the crash kernel before it would panic (arch/x86/kernel/dumpstack.c).
std::string crash_reason(const std::vector<LogLine>& log) {
  std::string reason = panic_reason(log);
  for (const LogLine& line : log) {
    if (!reason.empty()) break;
    const bool is_fault =
        line.text.starts_with("BUG: ") || line.text.starts_with("kernel BUG at ") ||
        line.text.starts_with("general protection fault") || line.text.starts_with("Oops: ");
    if (is_fault) reason = line.text;
  }
  return reason;
}

std::optional<PanicReport> read_panic(const KernelView& view, const std::vector<LogLine>& log) {
  const auto cpu = view.variable<std::int32_t>("panic_cpu");
  if (!cpu || *cpu < 0) return std::nullopt;  // PANIC_CPU_INVALID is -1
  return PanicReport{static_cast<std::uint32_t>(*cpu), panic_reason(log)};
}

/// The words are those of __oom_kill_process() (mm/oom_kill.c), 5.0 to 7.2; a memory cgroup's kill
/// is none of the whole guest's.
void read_last_kill(const std::vector<LogLine>& log, std::optional<std::uint64_t> now,
                    MemoryReport& memory) {
  constexpr std::string_view kWords = "Out of memory: Killed process ";
  for (const LogLine& line : log) {
    if (!line.text.starts_with(kWords)) continue;
    const std::string_view rest = std::string_view(line.text).substr(kWords.size());
    const std::size_t pid_end = rest.find(' '), name_end = rest.find(") ");
    if (pid_end == rest.npos || name_end == rest.npos || name_end <= pid_end + 2) continue;
    memory.last_killed = fmt::format(
        "{} (pid {})", rest.substr(pid_end + 2, name_end - pid_end - 2), rest.substr(0, pid_end));
    memory.last_kill_age.reset();
    if (now && line.time <= *now) memory.last_kill_age = *now - line.time;
  }
}

bool has_suspended(const KernelView& view) {
  const auto state = view.variable<std::int32_t>("system_state");
  const auto suspended = view.enumerator("SYSTEM_SUSPEND");
  return state && suspended && *state == *suspended;
}

bool is_suspended_to_idle(const KernelView& view) {
  const auto state = view.variable<std::int32_t>("s2idle_state");
  const auto entered = view.enumerator("S2IDLE_STATE_ENTER");
  return state && entered && *state == *entered;
}

std::optional<RcuReport> read_rcu(const KernelView& view, const Clocks& clocks) {
  const auto state = view.symbol("rcu_state");
  const auto nodes = view.field("rcu_state", "node");
  const auto count = view.length_of("rcu_state", "node");
  const std::uint64_t size = view.size_of("rcu_node");
  const auto sequence = view.value(state, view.field("rcu_state", "gp_seq"));
  if (!sequence || !nodes || !count || size == 0) return std::nullopt;
  RcuReport rcu;
  rcu.in_grace_period = (*sequence & 3) != 0;  // RCU_SEQ_STATE_MASK
  if (!rcu.in_grace_period) return rcu;
  if (const auto start = view.value(*state, view.field("rcu_state", "gp_start"))) {
    rcu.age = clocks.since_jiffies(*start);
  }
  const auto mask = view.field("rcu_node", "qsmask"), low = view.field("rcu_node", "grplo"),
             high = view.field("rcu_node", "grphi"), tasks = view.field("rcu_node", "gp_tasks"),
             level = view.field("rcu_node", "level");
  std::uint64_t deepest = 0;
  const auto node_at = [&](std::uint32_t i) {
    return state->wrapping_add(nodes->offset + std::uint64_t{i} * size);
  };
  const std::uint32_t looked_at = std::min(*count, kMostRcuNodes);
  for (std::uint32_t i = 0; i < looked_at; ++i) {
    deepest = std::max(deepest, view.value(node_at(i), level).value_or(0));
  }
  for (std::uint32_t i = 0; i < looked_at; ++i) {
    const GuestVirt node = node_at(i);
    if (view.value(node, level).value_or(0) != deepest) continue;
    rcu.waits_for_tasks = rcu.waits_for_tasks || view.pointer(node, tasks).has_value();
    const std::uint64_t waited = view.value(node, mask).value_or(0);
    const std::uint64_t first = view.value(node, low).value_or(0);
    const std::uint64_t last = view.value(node, high).value_or(0);
    for (std::uint64_t bit = 0; bit < 64 && bit <= last - first; ++bit) {
      if ((waited >> bit & 1) != 0 && first + bit < view.cpu_count()) {
        rcu.cpus.push_back(static_cast<std::uint32_t>(first + bit));
      }
    }
  }
  return rcu;
}

std::optional<std::uint64_t> watchdog_behind(const KernelView& view, const Clocks& clocks,
                                             std::uint32_t cpu) {
  const auto touched = view.load<std::uint64_t>(view.percpu("watchdog_touch_ts", cpu));
  // 0 and the largest number mean that it begins anew.
  if (!touched || *touched == 0 || *touched >> 33 != 0) return std::nullopt;
  return clocks.since(*touched << 30);
}

std::optional<std::uint64_t> watchdog_threshold(const KernelView& view) {
  const auto enabled = view.variable<std::int32_t>("watchdog_user_enabled");
  const auto soft = view.variable<std::int32_t>("watchdog_softlockup_user_enabled");
  const auto threshold = view.variable<std::int32_t>("watchdog_thresh");
  if (!threshold || *threshold <= 0 || enabled == 0 || soft == 0) return std::nullopt;
  return std::uint64_t{2'000'000'000} * static_cast<std::uint64_t>(*threshold);
}

std::vector<FilesystemReport> read_frozen_filesystems(const KernelView& view) {
  constexpr std::uint64_t kComplete = 4;  // SB_FREEZE_COMPLETE; smaller ones are on the way there
  std::vector<FilesystemReport> frozen;
  const auto list = view.symbol("super_blocks");
  const auto link = view.field("super_block", "s_list");
  const auto state = view.field("super_block", "s_writers.frozen");
  const auto device = view.field("super_block", "s_id");
  const auto type = view.field("super_block", "s_type");
  const auto type_name = view.field("file_system_type", "name");
  if (!list || !link || !state || !device) return frozen;
  view.walk_list(*list, kMostFilesystems, [&](GuestVirt node) {
    const GuestVirt at = node.wrapping_sub(link->offset);
    const std::uint64_t stage = view.value(at, state).value_or(0);
    if (stage == 0 || stage > kComplete) return true;
    FilesystemReport report{view.text(at.wrapping_add(device->offset), 32), {}, at};
    const auto kind = view.pointer(at, type);
    const auto name = kind ? view.pointer(*kind, type_name) : std::nullopt;
    if (name) report.type = view.text(*name, 32);
    frozen.push_back(std::move(report));
    return true;
  });
  return frozen;
}

std::optional<std::array<double, 3>> read_load(const KernelView& view) {
  const auto averages = view.variable<std::array<std::uint64_t, 3>>("avenrun");
  if (!averages) return std::nullopt;
  std::array<double, 3> load{};
  for (std::size_t i = 0; i < load.size(); ++i) {
    load[i] = static_cast<double>((*averages)[i]) / (1 << 11);
  }
  return load;
}

namespace {

using Bytes = std::optional<std::uint64_t>;

/// An element of an array of atomic_long_t that an enumerator numbers, in pages.
Bytes statistic(const KernelView& view, std::string_view array, std::string_view enumerator) {
  const auto base = view.symbol(array);
  const auto index = view.enumerator(enumerator);
  if (!base || !index || *index < 0) return std::nullopt;
  const auto pages = view.load<std::int64_t>(
      base->wrapping_add(static_cast<std::uint64_t>(*index) * sizeof(std::int64_t)));
  if (!pages) return std::nullopt;
  // Counters may be below zero for a moment.
  return static_cast<std::uint64_t>(std::max<std::int64_t>(*pages, 0)) * arch::kPageSize;
}

Bytes pages_of(const KernelView& view, std::string_view variable) {
  const auto pages = view.variable<std::int64_t>(variable);
  if (!pages) return std::nullopt;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(*pages, 0)) * arch::kPageSize;
}

std::optional<std::uint64_t> events(const KernelView& view, std::string_view enumerator) {
  const auto index = view.enumerator(enumerator);
  if (!index || *index < 0) return std::nullopt;
  std::optional<std::uint64_t> sum;
  for (std::uint32_t cpu = 0; cpu < view.cpu_count(); ++cpu) {
    const auto states = view.percpu("vm_event_states", cpu);
    if (!states) return std::nullopt;
    const auto count =
        view.load<std::uint64_t>(states->wrapping_add(static_cast<std::uint64_t>(*index) * 8));
    if (count) sum = sum.value_or(0) + *count;
  }
  return sum;
}

/// psi_group.avg[PSI_MEM_FULL][0]: the average over 10 s.
std::optional<double> memory_pressure(const KernelView& view) {
  const auto group = view.symbol("psi_system");
  const auto averages = view.field("psi_group", "avg");
  const auto state = view.enumerator("PSI_MEM_FULL");
  if (!group || !averages || !state || *state < 0) return std::nullopt;
  constexpr std::uint64_t kAverages = 3, kFixedPoint = 1 << 11;
  const auto value = view.load<std::uint64_t>(
      group->wrapping_add(averages->offset + static_cast<std::uint64_t>(*state) * kAverages * 8));
  // It may not be enabled; then it is zero, as it is in a guest with memory enough.
  if (!value || *value > 100 * kFixedPoint) return std::nullopt;
  return static_cast<double>(*value) / kFixedPoint;
}

}  // namespace

MemoryReport read_memory_state(const KernelView& view) {
  const auto zone = [&](std::string_view name) { return statistic(view, "vm_zone_stat", name); };
  const auto node = [&](std::string_view name) { return statistic(view, "vm_node_stat", name); };
  MemoryReport memory;
  memory.total = pages_of(view, "_totalram_pages");
  memory.free = zone("NR_FREE_PAGES");
  memory.page_cache = node("NR_FILE_PAGES");
  memory.anonymous = node("NR_ANON_MAPPED");
  memory.shared = node("NR_SHMEM");
  memory.dirty = node("NR_FILE_DIRTY");
  memory.writeback = node("NR_WRITEBACK");
  memory.unreclaimable_slab = node("NR_SLAB_UNRECLAIMABLE_B");
  memory.swap_total = pages_of(view, "total_swap_pages");
  memory.swap_free = pages_of(view, "nr_swap_pages");
  memory.oom_kills = events(view, "OOM_KILL");
  memory.pressure = memory_pressure(view);
  if (const auto reserve = view.variable<std::int32_t>("min_free_kbytes");
      reserve && *reserve > 0) {
    memory.reserve = static_cast<std::uint64_t>(*reserve) << 10;
  }
  return memory;
}

}  // namespace ringside::guest_linux
