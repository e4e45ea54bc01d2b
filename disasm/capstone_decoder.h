// A second decoder, by Capstone, that shares no code with the first. Used by tests and
// cross_check.cc; not linked into the product.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "vmm/base/address.h"

namespace ringside::disasm {

/// Intel-syntax text of the instruction; empty when Capstone cannot decode it.
std::string to_text(std::span<const std::byte> bytes, GuestVirt address);
/// Its length in bytes; empty when Capstone cannot decode it.
std::optional<std::uint8_t> capstone_length(std::span<const std::byte> bytes, GuestVirt address);

}  // namespace ringside::disasm
