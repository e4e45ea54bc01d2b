// Instructions that add to a word of memory in one go: inc, dec, add and sub. A kernel counts with
// them, so they are the exact places of its counters.
// Fire context: amount() yes; decode_addition() no.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "disasm/operation.h"
#include "vmm/arch/arch.h"
#include "vmm/base/address.h"

namespace ringside::disasm {

/// An addition to 8 bytes of memory.
struct Addition {
  MemoryOperand memory;
  arch::Register source = nullptr;  // of the amount; null: it is `number`
  std::int64_t number = 0;
  bool is_subtracted = false;
};

/// Decodes the instruction at the start of `bytes` as if it lay at `address`. Empty for everything
/// else, with a lock prefix, too: counters of a CPU need none.
std::optional<Addition> decode_addition(std::span<const std::byte> bytes, GuestVirt address);

/// By how much the word grows, modulo 2^64.
std::uint64_t amount(const Addition& addition, const Registers& registers);

}  // namespace ringside::disasm
