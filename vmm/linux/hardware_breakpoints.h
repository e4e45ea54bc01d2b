// The hardware breakpoints that the guest's kernel has set for itself and its processes: perf's
// mem:ADDR, ptrace's, kgdb's.
// Hostile input: read anew, and copied, each time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"

namespace ringside::guest_linux {

/// cpu_dr7 and cpu_debugreg[], per CPU, of arch/x86/kernel/hw_breakpoint.c (2.6.33 to 7.2).
class HardwareBreakpoints {
 public:
  explicit HardwareBreakpoints(const Kernel& kernel);

  /// The addresses of all breakpoints that are set on any CPU now, for any kind of access. Those of
  /// a task that sleeps are set when the task runs.
  std::vector<GuestVirt> find(const GuestReader& memory,
                              std::span<const std::uint64_t> percpu_bases) const;

 private:
  std::optional<std::uint64_t> enabled_, addresses_;  // per-CPU offsets
};

}  // namespace ringside::guest_linux
