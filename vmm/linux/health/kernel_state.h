// The kernel's own signs of trouble: a panic, RCU's grace period, soft lockups, frozen file
// systems, load; the state of its memory.
// Source: panic_cpu (kernel/panic.c); rcu_state (kernel/rcu/tree.h); watchdog_touch_ts, in units of
// 2^30 ns (kernel/watchdog.c); super_blocks and s_writers.frozen (include/linux/fs.h); avenrun,
// with 11 bits of fraction (kernel/sched/loadavg.c). Used by examine(). Hostile input: bounded,
// printable.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "vmm/linux/health/clocks.h"
#include "vmm/linux/health/kernel_view.h"
#include "vmm/linux/health/report.h"

namespace ringside::guest_linux {

/// `log` is where the reason stands.
std::optional<PanicReport> read_panic(const KernelView& view, const std::vector<LogLine>& log);
/// Why a kernel started its crash kernel: the message of its panic, or of the fault that led to it.
std::string crash_reason(const std::vector<LogLine>& log);
/// The task that was killed last for want of memory, into `memory`. `now`: since boot.
void read_last_kill(const std::vector<LogLine>& log, std::optional<std::uint64_t> now,
                    MemoryReport& memory);
/// By system_state (include/linux/kernel.h): the kernel sleeps in S3 or S4, or is on its way there.
bool has_suspended(const KernelView& view);
/// By s2idle_state (kernel/power/suspend.c): it idles with its devices suspended until it is woken.
bool is_suspended_to_idle(const KernelView& view);
std::optional<RcuReport> read_rcu(const KernelView& view, const Clocks& clocks);
/// How long ago the soft-lockup watchdog of a CPU last ran; empty where it does not watch.
std::optional<std::uint64_t> watchdog_behind(const KernelView& view, const Clocks& clocks,
                                             std::uint32_t cpu);
/// After what time the kernel calls it a soft lockup; empty when it does not watch.
std::optional<std::uint64_t> watchdog_threshold(const KernelView& view);
std::vector<FilesystemReport> read_frozen_filesystems(const KernelView& view);
std::optional<std::array<double, 3>> read_load(const KernelView& view);

/// How much memory is free, what the rest is used for, and how long work waits for it.
/// Source: vm_zone_stat and vm_node_stat (mm/vmstat.c), counted in pages (and slabs in bytes), by
/// the enumerators of zone_stat_item and node_stat_item (include/linux/mmzone.h); vm_event_states,
/// one a CPU, by vm_event_item; psi_system (kernel/sched/psi.c), whose averages are fixed-point
/// with 11 bits. Counts that CPUs have not added up yet are missing: at most 125 pages for each
/// CPU.
MemoryReport read_memory_state(const KernelView& view);

}  // namespace ringside::guest_linux
