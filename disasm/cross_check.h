// A second decoder, Capstone, which shares no code with the first, and both over the same text: a
// wrong length would put a breakpoint into the middle of an instruction, so Zydis and Capstone must
// agree. Used by tests, over the host's own text and over the whole text of a live guest kernel;
// not linked into the product.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vmm/base/address.h"

namespace ringside::disasm {

/// Intel-syntax text of the instruction; empty when Capstone cannot decode it.
std::string to_text(std::span<const std::byte> bytes, GuestVirt address);
/// Its length in bytes; empty when Capstone cannot decode it.
std::optional<std::uint8_t> capstone_length(std::span<const std::byte> bytes, GuestVirt address);

struct LengthDifference {
  GuestVirt address;
  std::uint8_t zydis = 0, capstone = 0;  // lengths in bytes; both decoded
};

struct CrossCheck {
  std::uint64_t instructions = 0;   // that both decoded
  std::uint64_t neither = 0;        // bytes that no decoder knows; skipped one by one
  std::uint64_t zydis_only = 0;     // instructions that Capstone 4.0 does not know
  std::uint64_t capstone_only = 0;  // ... that Zydis does not know: we refuse these
  /// The known difference: UD1 (0f b9 /r) has a ModRM byte, Capstone 4.0 calls it ud2b and stops
  /// before it. Zydis is right (Intel SDM volume 2, UD).
  std::uint64_t ud1 = 0;
  std::vector<LengthDifference> unexplained;  // must stay empty

  /// Adds another sweep's result.
  void add(const CrossCheck& other);
};

/// Sweeps `text`, one function or any run of instructions that starts at a boundary, in Zydis's
/// steps.
CrossCheck cross_check(std::span<const std::byte> text, GuestVirt address);

}  // namespace ringside::disasm
