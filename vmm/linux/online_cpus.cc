#include "vmm/linux/online_cpus.h"

#include <algorithm>
#include <bit>

#include "vmm/page_walk.h"

namespace ringside::guest_linux {
namespace {

constexpr std::uint32_t kCpusPerWord = 64;  // in the mask

/// The word of the mask that has the CPU's bit; of a mask by virtual or by physical address.
template <class Address>
Address word_with(Address mask, std::uint32_t cpu) {
  return mask.wrapping_add(std::uint64_t{cpu / kCpusPerWord} * sizeof(std::uint64_t));
}
bool has_bit(std::uint64_t word, std::uint32_t cpu) {
  return (word >> cpu % kCpusPerWord & 1) != 0;
}

}  // namespace

OnlineCpus::OnlineCpus(const Kernel& kernel) {
  const Symbol* const symbol = kernel.symbols().find("__cpu_online_mask", "vmlinux");
  if (symbol != nullptr) mask_ = symbol->address;
}

std::optional<std::uint64_t> OnlineCpus::word(const GuestReader& memory, std::uint32_t cpu) const {
  if (!mask_) return std::nullopt;
  const auto loaded = load<std::uint64_t>(memory, word_with(*mask_, cpu));
  return loaded ? std::optional(*loaded) : std::nullopt;
}

std::optional<bool> OnlineCpus::has(const GuestReader& memory, std::uint32_t cpu) const {
  const auto bits = word(memory, cpu);
  return bits ? std::optional(has_bit(*bits, cpu)) : std::nullopt;
}

std::optional<std::uint32_t> OnlineCpus::count(const GuestReader& memory,
                                               std::uint32_t most) const {
  std::uint32_t online = 0;
  for (std::uint32_t first = 0; first < most; first += kCpusPerWord) {
    const auto bits = word(memory, first);
    if (!bits) return std::nullopt;
    const std::uint32_t left = std::min(most - first, kCpusPerWord);
    online += static_cast<std::uint32_t>(std::popcount(*bits << (kCpusPerWord - left)));
  }
  return online;
}

std::optional<GuestPhys> OnlineCpusInRam::find() const {
  if (const std::uint64_t known = place_.load(std::memory_order_relaxed); known != 0)
    return GuestPhys(known);
  if (!mask_) return std::nullopt;
  const auto found = vmm::translate(memory_, kernel_.table_in(memory_), *mask_);
  return found ? std::optional(found->address) : std::nullopt;
}

bool OnlineCpusInRam::is_offline(std::uint32_t cpu, const Registers& registers) const {
  const auto place = find();
  const auto first = place ? memory_.load64(*place) : std::nullopt;
  if (first.value_or(0) == 0) return false;
  if (!arch::pages(registers)) return true;
  if (place_.load(std::memory_order_relaxed) == 0) {
    const auto own = vmm::translate(memory_, arch::page_table_of(registers), *mask_);
    if (own && own->address == *place) place_.store(place->raw(), std::memory_order_relaxed);
  }
  const GuestPhys there = word_with(*place, cpu);  // the kernel's image is in one piece
  const auto bits = there == *place ? first : memory_.load64(there);
  return bits && !has_bit(*bits, cpu);
}

}  // namespace ringside::guest_linux
