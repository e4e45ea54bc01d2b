// Reads numbers and structures from bytes that somebody else wrote (files, tables, records). It
// copies, so the bytes need not be aligned. Little-endian, as the host.
// Used by all decoders.
// Fire context: yes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace ringside {

/// One T at byte `index` of `bytes`, which the caller has checked to be there.
template <class T>
T load_at(std::span<const std::byte> bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index, sizeof value);
  return value;
}

/// The same; empty when not all of it is there.
template <class T>
std::optional<T> load_within(std::span<const std::byte> bytes, std::uint64_t index) {
  if (index > bytes.size() || sizeof(T) > bytes.size() - index) return std::nullopt;
  return load_at<T>(bytes, index);
}

}  // namespace ringside
