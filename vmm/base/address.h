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
