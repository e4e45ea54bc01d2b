#include "vmm/linux/kernel_variables.h"

namespace ringside::guest_linux {

std::optional<std::uint32_t> panicked_cpu(const Kernel& kernel, const GuestReader& memory) {
  const Symbol* symbol = kernel.symbols().find("panic_cpu", "vmlinux");
  if (symbol == nullptr) return std::nullopt;
  const auto cpu = load<std::int32_t>(memory, symbol->address);
  if (!cpu || *cpu < 0) return std::nullopt;
  return static_cast<std::uint32_t>(*cpu);
}

std::optional<std::uint32_t> tsc_khz(const Kernel& kernel, const GuestReader& memory) {
  const Symbol* symbol = kernel.symbols().find("tsc_khz", "vmlinux");
  if (symbol == nullptr) return std::nullopt;
  const auto khz = load<std::uint32_t>(memory, symbol->address);
  return khz ? std::optional(*khz) : std::nullopt;
}

}  // namespace ringside::guest_linux
