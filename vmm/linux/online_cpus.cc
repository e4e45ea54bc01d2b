#include "vmm/linux/online_cpus.h"

#include <algorithm>
#include <bit>

namespace ringside::guest_linux {
namespace {

constexpr std::uint32_t kCpusPerWord = 64;  // in the mask

}  // namespace

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
  const auto bits = word(memory, cpu / kCpusPerWord);
  if (!bits) return std::nullopt;
  return (*bits >> cpu % kCpusPerWord & 1) != 0;
}

std::optional<std::uint32_t> OnlineCpus::count(const GuestReader& memory,
                                               std::uint32_t most) const {
  std::uint32_t online = 0;
  for (std::uint32_t first = 0; first < most; first += kCpusPerWord) {
    const auto bits = word(memory, first / kCpusPerWord);
    if (!bits) return std::nullopt;
    const std::uint32_t left = std::min(most - first, kCpusPerWord);
    online += static_cast<std::uint32_t>(std::popcount(*bits << (kCpusPerWord - left)));
  }
  return online;
}

}  // namespace ringside::guest_linux
