#include "vmm/linux/listing/cpu_times.h"

namespace ringside::guest_linux {

Result<CpuTimes> read_cpu_times(const KernelView& view) {
  Wanted wanted(view);
  Shape stat(wanted, "kernel_cpustat");
  const Field times = stat.need(wanted, "cpustat");
  (void)wanted.symbol("kernel_cpustat");
  const auto index = [&](std::string_view name) {
    return static_cast<std::uint64_t>(wanted.enumerator(name));
  };
  const std::uint64_t user = index("CPUTIME_USER"), nice = index("CPUTIME_NICE"),
                      system = index("CPUTIME_SYSTEM"), irq = index("CPUTIME_IRQ"),
                      soft_irq = index("CPUTIME_SOFTIRQ"), steal = index("CPUTIME_STEAL");
  TRY(wanted.check("CPU times"));
  CpuTimes sum;
  for (std::uint32_t cpu = 0; cpu < view.cpu_count(); ++cpu) {
    const auto at = view.percpu("kernel_cpustat", cpu);
    if (!at) continue;
    const auto time = [&](std::uint64_t which) {
      return view.load<std::uint64_t>(at->wrapping_add(times.offset).wrapping_add(which * 8))
          .value_or(0);
    };
    sum.user += time(user);
    sum.nice += time(nice);
    sum.system += time(system);
    sum.interrupts += time(irq) + time(soft_irq);
    sum.stolen += time(steal);
  }
  return sum;
}

}  // namespace ringside::guest_linux
