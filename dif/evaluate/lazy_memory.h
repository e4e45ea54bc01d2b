// Zeroed memory that costs nothing until it is touched. For buffers and tables whose size is an
// option: they must exist before the first firing, because a firing may not allocate.
// Fire context: use yes, making one no.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace ringside::dif {

class LazyMemory {
 public:
  LazyMemory() = default;
  /// At least one page. When the host refuses so much, halves the size until it agrees, so
  /// bytes().size() may be less than asked for.
  explicit LazyMemory(std::size_t size);
  LazyMemory(LazyMemory&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  LazyMemory& operator=(LazyMemory&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~LazyMemory();

  /// Whether the host would grant so much now.
  static bool is_possible(std::size_t size);

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace ringside::dif
