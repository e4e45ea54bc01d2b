// Loads several numbers of one structure of the kernel at once. If guest RAM is only copied, each
// read is a system call, so one read of a part of the structure is cheaper than one for each
// number. Used by walks that are made while the guest waits. Fire context: yes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "vmm/base/guest_reader.h"
#include "vmm/linux/layout.h"

namespace ringside::guest_linux {

/// The numbers at these places of the structure, unsigned; one without bytes is 0. Empty when one
/// cannot be read. It is one read if all lie within 512 bytes.
template <std::size_t kCount>
std::optional<std::array<std::uint64_t, kCount>> load_numbers(
    const GuestReader& kernel, GuestVirt structure,
    const std::array<NumberMember, kCount>& places) {
  constexpr std::size_t kBlock = 512;
  std::uint64_t begin = UINT32_MAX, end = 0;
  for (const NumberMember& each : places) {
    if (each.bytes == 0) continue;
    begin = std::min<std::uint64_t>(begin, each.offset);
    end = std::max<std::uint64_t>(end, std::uint64_t{each.offset} + each.bytes);
  }
  std::array<std::byte, kBlock> block;
  const bool at_once = end > begin && end - begin <= kBlock;
  const auto part = std::span(block).first(at_once ? end - begin : 0);
  if (at_once && !kernel.read(structure.wrapping_add(begin), part)) return std::nullopt;
  std::array<std::uint64_t, kCount> numbers{};
  for (std::size_t n = 0; n < kCount; ++n) {
    const NumberMember& place = places[n];
    if (place.bytes == 0) continue;
    if (at_once) {
      std::memcpy(&numbers[n], block.data() + (place.offset - begin),
                  std::min<std::size_t>(place.bytes, sizeof numbers[n]));
    } else if (const auto number = load_number(kernel, structure, place)) {
      numbers[n] = *number;
    } else {
      return std::nullopt;
    }
  }
  return numbers;
}

}  // namespace ringside::guest_linux
