// Reads DWARF's encodings (DWARF 5, section 7.6; LSB 5.0 Core, section 10.5) from a range of a
// guest's memory, by small copies. Used by eh_frame.cc and dwarf_expression.cc.
// Hostile input: nothing is read outside of the range. What cannot be read is 0, and ok() is false
// from then on; so a reader may go on and ask once. Fire context: yes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "vmm/base/bytes.h"
#include "vmm/base/guest_reader.h"

namespace ringside::guest_linux {

class DwarfCursor {
 public:
  /// At the first byte of [begin, end). `memory` must outlive it.
  DwarfCursor(const GuestReader& memory, GuestVirt begin, GuestVirt end)
      : memory_(&memory), at_(begin), end_(std::max(begin, end)) {}

  bool ok() const { return ok_; }
  bool at_end() const { return at_ >= end_; }
  GuestVirt at() const { return at_; }
  GuestVirt end() const { return end_; }

  template <class T>
  T take() {
    std::array<std::byte, sizeof(T)> bytes;
    for (std::byte& byte : bytes) byte = take_byte();
    return load_at<T>(bytes, 0);
  }
  /// Bits beyond 64 are lost.
  std::uint64_t take_uleb() { return take_leb().value; }
  std::int64_t take_sleb() {
    const auto [value, bits, negative] = take_leb();
    const bool extend = negative && bits < 64;
    return static_cast<std::int64_t>(extend ? value | ~std::uint64_t{0} << bits : value);
  }
  /// Goes on so many bytes from here, or there; both must lie in the range.
  void skip(std::uint64_t bytes) {
    if (bytes > end_.offset_from(at_)) return fail();
    go_to(at_.wrapping_add(bytes));
  }
  /// The range ends so many bytes from here, if it does not end before.
  void limit(std::uint64_t bytes) {
    if (bytes < end_.offset_from(at_)) end_ = at_.wrapping_add(bytes);
  }
  void go_to(GuestVirt at) {
    if (at > end_ || at < begin_) return fail();
    at_ = at;
  }
  void fail() {
    ok_ = false;
    at_ = end_;
  }

 private:
  struct Leb {
    std::uint64_t value = 0;
    unsigned bits = 0;
    bool negative = false;
  };
  static constexpr unsigned kLongestLeb = 16;  // compilers pad them, but not so far

  Leb take_leb() {
    Leb leb;
    for (unsigned n = 0; n < kLongestLeb; ++n) {
      const auto byte = static_cast<std::uint8_t>(take_byte());
      if (leb.bits < 64) leb.value |= std::uint64_t{byte & 0x7fU} << leb.bits;
      leb.bits += 7;
      leb.negative = (byte & 0x40) != 0;
      if ((byte & 0x80) == 0) return leb;
    }
    fail();
    return {};
  }
  std::byte take_byte() {
    if (at_ >= end_) {
      ok_ = false;
      return {};
    }
    const std::uint64_t index = at_.offset_from(window_at_);
    if (index < window_size_) {
      at_ = at_.wrapping_add(1);
      return window_[index];
    }
    window_at_ = at_;
    window_size_ = read_available(
        *memory_, at_,
        std::span(window_).first(std::min<std::uint64_t>(window_.size(), end_.offset_from(at_))));
    if (window_size_ == 0) {
      fail();
      return {};
    }
    at_ = at_.wrapping_add(1);
    return window_[0];
  }

  const GuestReader* memory_;
  GuestVirt at_, end_;
  GuestVirt begin_ = at_;
  GuestVirt window_at_;
  std::uint64_t window_size_ = 0;
  bool ok_ = true;
  std::array<std::byte, 64> window_;
};

}  // namespace ringside::guest_linux
