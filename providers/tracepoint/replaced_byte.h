// The byte that an int3 of a tracer that died has replaced: it is kept before the slot, and the
// slot proves it. Used by who takes a guest over. Pure; hostile input. Fire context: no.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "vmm/base/address.h"

namespace ringside::providers {

/// The byte, where `text`, from `address` on, begins with an int3, `byte` lies before the slot at
/// `slot`, and `code` is what that holds: if with that byte the instruction at `address`,
/// relocated, is what the slot holds. Else empty.
std::optional<std::byte> find_replaced(std::span<const std::byte> text, GuestVirt address,
                                       std::byte byte, std::span<const std::byte> code,
                                       GuestVirt slot);

}  // namespace ringside::providers
