// The bytes of a fuzz target's input, taken from the front; when they are at an end, zeroes.
// And the other way round, for first inputs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace ringside::fuzz {

class FuzzScript {
 public:
  explicit FuzzScript(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool at_end() const { return rest_.empty(); }
  template <class T>
  T take() {
    T value{};
    const auto bytes = take_bytes(sizeof value);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  /// At most `size`.
  std::span<const std::byte> take_bytes(std::size_t size) {
    const auto bytes = rest_.first(std::min(size, rest_.size()));
    rest_ = rest_.subspan(bytes.size());
    return bytes;
  }

 private:
  std::span<const std::byte> rest_;
};

class ScriptWriter {
 public:
  template <class... T>
  ScriptWriter& put(T... values) {
    (append(values), ...);
    return *this;
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  template <class T>
  void append(T value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  std::vector<std::byte> bytes_;
};

}  // namespace ringside::fuzz
