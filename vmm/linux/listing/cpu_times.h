// How the CPUs of a guest spend their time, and how much memory it has, for `top`.
// Source: kernel_cpustat (include/linux/kernel_stat.h), one a CPU, in nanoseconds, by the
// enumerators of cpu_usage_stat. Idle time is not read: the kernel counts it late while a CPU
// sleeps. Whoever has two readings takes what is not busy for idle.
#pragma once

#include <cstdint>

#include "vmm/linux/listing/listing.h"

namespace ringside::guest_linux {

/// Nanoseconds of all CPUs together, since boot.
struct CpuTimes {
  std::uint64_t user = 0, nice = 0, system = 0, interrupts = 0, stolen = 0;
  std::uint64_t busy() const { return user + nice + system + interrupts; }
};

/// Unsupported where the kernel's types do not say enough.
Result<CpuTimes> read_cpu_times(const KernelView& view);

}  // namespace ringside::guest_linux
