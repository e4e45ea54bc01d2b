#include "vmm/linux/online_cpus.h"

namespace ringside::guest_linux {

OnlineCpus::OnlineCpus(const Kernel& kernel) {
  const Symbol* const symbol = kernel.symbols().find("__cpu_online_mask", "vmlinux");
  if (symbol != nullptr) mask_ = symbol->address;
}

std::optional<std::uint64_t> OnlineCpus::word(const GuestReader& memory,
                                              std::uint32_t index) const {
  if (!mask_) return std::nullopt;
  const auto loaded = load<std::uint64_t>(
      memory, mask_->wrapping_add(std::uint64_t{index} * sizeof(std::uint64_t)));
  return loaded ? std::optional(*loaded) : std::nullopt;
}

std::optional<bool> OnlineCpus::has(const GuestReader& memory, std::uint32_t cpu) const {
  constexpr std::uint32_t kBits = 64;
  const auto bits = word(memory, cpu / kBits);
  if (!bits) return std::nullopt;
  return (*bits >> cpu % kBits & 1) != 0;
}

std::optional<std::uint32_t> OnlineCpus::count(const GuestReader& memory,
                                               std::uint32_t most) const {
  std::uint32_t online = 0;
  for (std::uint32_t cpu = 0; cpu < most; ++cpu) {
    const auto is_online = has(memory, cpu);
    if (!is_online) return std::nullopt;
    online += *is_online ? 1 : 0;
  }
  return online;
}

}  // namespace ringside::guest_linux
