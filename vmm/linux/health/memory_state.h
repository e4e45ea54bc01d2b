// The state of a guest's memory: how much is free, what the rest is used for, which task was killed
// for lack of it, and how long work waits for it.
// Source: vm_zone_stat and vm_node_stat (mm/vmstat.c), counted in pages (and slabs in bytes), by
// the enumerators of zone_stat_item and node_stat_item (include/linux/mmzone.h); vm_event_states,
// one a CPU, by vm_event_item; psi_system (kernel/sched/psi.c), whose averages are fixed-point with
// 11 bits. Counts that CPUs have not added up yet are missing: at most 125 pages for each CPU. Used
// by examine().
#pragma once

#include "vmm/linux/health/kernel_view.h"
#include "vmm/linux/health/report.h"

namespace ringside::guest_linux {

MemoryReport read_memory_state(const KernelView& view);

}  // namespace ringside::guest_linux
