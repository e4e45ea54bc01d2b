// Converts register values to the bytes of an access, and back: x86 and virtio are little-endian,
// and so is the host. Used by the devices.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

namespace ringside::vmm::kvm {

/// The first 8 bytes of `data` as a number; bytes that are not there are 0.
inline std::uint64_t value_of(std::span<const std::byte> data) {
  std::uint64_t value = 0;
  std::memcpy(&value, data.data(), std::min(data.size(), sizeof value));
  return value;
}

/// `value` into `data`; bytes beyond the value become 0.
inline void put_value(std::span<std::byte> data, std::uint64_t value) {
  std::ranges::fill(data, std::byte{0});
  std::memcpy(data.data(), &value, std::min(data.size(), sizeof value));
}

inline void put_all_ones(std::span<std::byte> data) {
  std::ranges::fill(data, std::byte{0xff});
}

}  // namespace ringside::vmm::kvm
