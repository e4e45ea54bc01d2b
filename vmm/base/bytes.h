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
#include <string_view>

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

/// Whether `bytes` begin with those of `text`, as a file does with its magic.
inline bool begins_with(std::span<const std::byte> bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

}  // namespace ringside
