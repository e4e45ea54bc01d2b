// Guest addresses as types, so that a virtual and a physical address cannot be mixed and no sum
// can wrap unnoticed. Host memory is never an address: it is a std::span.
// Fire context: yes.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>

namespace ringside {

template <class Tag>
class Address {
 public:
  constexpr Address() = default;
  explicit constexpr Address(std::uint64_t raw) : raw_(raw) {}
  constexpr std::uint64_t raw() const { return raw_; }
  constexpr auto operator<=>(const Address&) const = default;

  /// Empty when the sum would wrap. Lengths come from the guest, so it can.
  constexpr std::optional<Address> checked_add(std::uint64_t n) const {
    return n <= UINT64_MAX - raw_ ? std::optional(Address(raw_ + n)) : std::nullopt;
  }
  /// The sum as a CPU computes it: it wraps. For the targets of the guest's jumps, and inside a
  /// range that was checked before. Reading at the result is safe, whatever it is.
  constexpr Address wrapping_add(std::uint64_t n) const { return Address(raw_ + n); }
  /// The difference, which wraps, too: the structure that has a member here, `n` bytes into it.
  constexpr Address wrapping_sub(std::uint64_t n) const { return Address(raw_ - n); }
  /// How far it lies above `base`; below, a number beyond any size.
  constexpr std::uint64_t offset_from(Address base) const { return raw_ - base.raw_; }
  /// Whether it is one of the `size` bytes from `base` on, which may end at the last address.
  constexpr bool is_in(Address base, std::uint64_t size) const { return offset_from(base) < size; }

 private:
  std::uint64_t raw_ = 0;
};

/// A virtual address in the guest; it means something only together with a page table.
using GuestVirt = Address<struct GuestVirtTag>;
/// A guest-physical address.
using GuestPhys = Address<struct GuestPhysTag>;

}  // namespace ringside

template <class Tag>
struct std::hash<ringside::Address<Tag>> {
  std::size_t operator()(ringside::Address<Tag> a) const noexcept {
    return std::hash<std::uint64_t>()(a.raw());
  }
};
