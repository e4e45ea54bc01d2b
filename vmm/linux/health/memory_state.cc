#include "vmm/linux/health/memory_state.h"

#include <algorithm>

#include "vmm/arch/arch.h"

namespace ringside::guest_linux {
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
