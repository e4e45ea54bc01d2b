// A private copy of a piece of the kernel's image, addressed by the guest's virtual addresses.
// Every access is bounds-checked. Used by the pure decoders (kallsyms, BTF, patched sites): no
// guest changes the bytes while they decode, and they can be tested without a guest.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "vmm/base/address.h"
#include "vmm/base/bytes.h"

namespace ringside::guest_linux {

struct ImageView {
  GuestVirt base;
  std::span<const std::byte> bytes;

  GuestVirt end() const { return base.wrapping_add(bytes.size()); }

  /// The index of `at` in `bytes`; empty when it is outside.
  std::optional<std::size_t> index_of(GuestVirt at) const {
    const std::uint64_t index = at.offset_from(base);  // wraps to a huge number below base
    if (index >= bytes.size()) return std::nullopt;
    return static_cast<std::size_t>(index);
  }

  /// The bytes [at, at + size); empty unless all of them are here.
  std::optional<std::span<const std::byte>> slice(GuestVirt at, std::uint64_t size) const {
    const auto index = index_of(at);
    if (!index || size > bytes.size() - *index) return std::nullopt;
    return bytes.subspan(*index, static_cast<std::size_t>(size));
  }

  template <class T>
  std::optional<T> load(GuestVirt at) const {
    const auto source = slice(at, sizeof(T));
    if (!source) return std::nullopt;
    return load_at<T>(*source, 0);
  }
};

}  // namespace ringside::guest_linux
