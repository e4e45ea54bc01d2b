// The places of RAM in a machine of ours, and the memory map that the guest gets.
#include "vmm/kvm/boot/layout.h"

#include <algorithm>

namespace ringside::vmm::kvm {

std::vector<RamPiece> place_ram(std::uint64_t size) {
  std::vector<RamPiece> pieces;
  const std::uint64_t low = std::min(size, kHoleStart);
  if (low > 0) pieces.push_back({GuestPhys(0), 0, low});
  if (size > low) pieces.push_back({GuestPhys(kHighRam), low, size - low});
  return pieces;
}

std::optional<GuestMemory::Extent> shim_memory(std::uint64_t ram_size) {
  if (GuestPhys(ram_size) < kShimMemory.base.wrapping_add(kShimMemory.size)) return std::nullopt;
  return kShimMemory;
}

std::vector<E820Entry> memory_map(std::uint64_t ram_size) {
  std::vector<E820Entry> map;
  const auto add = [&](std::uint64_t start, std::uint64_t end, E820Type type) {
    if (start < end) map.push_back({start, end - start, type});
  };
  const std::uint64_t low_end = std::min(ram_size, kHoleStart);
  add(0, std::min(low_end, kLowRamEnd), E820Type::Ram);
  add(kLowRamEnd, std::min<std::uint64_t>(low_end, 0xa0000), E820Type::Reserved);
  add(kAcpiTables, std::min(low_end, kAcpiEnd), E820Type::Reserved);
  if (const auto shim = shim_memory(ram_size)) {
    const std::uint64_t start = shim->base.raw(), end = start + shim->size;
    add(kAcpiEnd, start, E820Type::Ram);
    add(start, end, E820Type::Reserved);
    add(end, low_end, E820Type::Ram);
  } else {
    add(kAcpiEnd, low_end, E820Type::Ram);
  }
  if (ram_size > low_end) add(kHighRam, kHighRam + (ram_size - low_end), E820Type::Ram);
  return map;
}

}  // namespace ringside::vmm::kvm
