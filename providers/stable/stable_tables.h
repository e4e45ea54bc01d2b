// The probes of the stable providers: data. docs/providers.md has them for users.
#pragma once

#include <span>

#include "providers/stable/stable_probe.h"

namespace ringside::providers {

/// The state in which a thread leaves its CPU, at sched_switch. Before 5.18 the tracepoint has no
/// such argument; the state is read from the thread, as the guest's own trace events do. The member
/// has underscores since 5.14.
inline constexpr std::string_view kSwitchedState = "arg3|current->__state|current->state";

std::span<const StableTable> process_tables();  // proc, sched
std::span<const StableTable> network_tables();  // ip, tcp, udp
std::span<const StableTable> block_tables();    // io
std::span<const StableTable> counter_tables();  // vminfo, sysinfo, mib
std::span<const StableTable> lock_tables();     // lockstat

}  // namespace ringside::providers
