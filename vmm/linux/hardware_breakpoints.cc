#include "vmm/linux/hardware_breakpoints.h"

#include <array>

#include "vmm/arch/arch.h"

namespace ringside::guest_linux {

HardwareBreakpoints::HardwareBreakpoints(const Kernel& kernel) {
  const SymbolTable& symbols = kernel.symbols();
  const Symbol* const enabled = symbols.find("cpu_dr7", "vmlinux");
  const Symbol* const addresses = symbols.find("cpu_debugreg", "vmlinux");
  if (enabled == nullptr || addresses == nullptr) return;
  enabled_ = enabled->address.raw();
  addresses_ = addresses->address.raw();
}

std::vector<GuestVirt> HardwareBreakpoints::find(
    const GuestReader& memory, std::span<const std::uint64_t> percpu_bases) const {
  std::vector<GuestVirt> found;
  if (!enabled_) return found;
  for (const std::uint64_t base : percpu_bases) {
    const GuestVirt cpu(base);
    const auto enabled = load<std::uint64_t>(memory, cpu.wrapping_add(*enabled_));
    if (!enabled) continue;
    const auto addresses = load<std::array<std::uint64_t, arch::kHardwareBreakpoints>>(
        memory, cpu.wrapping_add(*addresses_));
    if (!addresses) continue;
    for (unsigned n = 0; n < addresses->size(); ++n) {
      if (arch::is_breakpoint_enabled(*enabled, n)) found.emplace_back((*addresses)[n]);
    }
  }
  return found;
}

}  // namespace ringside::guest_linux
