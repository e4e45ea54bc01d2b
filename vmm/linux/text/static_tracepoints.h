// The kernel's static tracepoints (TRACE_EVENT, DECLARE_TRACE): their names, groups, and the keys
// that lead to their places in the text (Kernel::patched_sites()). From the kernel's own tables:
//   __start___tracepoints_ptrs, and of modules tracepoints_ptrs: s32 offsets relative to themselves
//                                that lead to struct tracepoint (include/linux/tracepoint-defs.h)
//   ftrace_events                struct trace_event_call, which says the group of a tracepoint
//                                (include/linux/trace_events.h)
// Offsets in those structures come from the kernel's types.
// Used by the provider sdt. Hostile input: counts are capped, lists are bounded, names that do not
// print are left out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vmm/base/guest_reader.h"
#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"

namespace ringside::guest_linux {

struct StaticTracepoint {
  std::string name;               // "sched_switch"
  std::string group;              // "sched"; of one that is no event: the name of its module
  GuestVirt key;                  // of its jump labels
  GuestVirt call_key;             // of the static call that its places make
  GuestVirt functions;            // where it keeps the array of what is called; a pointer
  bool has_registration = false;  // the kernel has to be told before anybody comes by
  std::uint16_t module = 0;       // index into SymbolTable::modules()
};

/// Ids are reserved for this many; a kernel and its modules have some 2,000.
inline constexpr std::uint32_t kMostStaticTracepoints = 1 << 14;

/// All of vmlinux and then of each module, in the order of their tables. Unsupported: this kernel
/// has none, or its types do not describe them; before Kernel::end_set_up().
Result<std::vector<StaticTracepoint>> read_static_tracepoints(const GuestReader& memory,
                                                              const Kernel& kernel);

}  // namespace ringside::guest_linux
