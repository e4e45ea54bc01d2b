// Instructions with their operands, which takes three times as long as without (zydis_decoder.h).
// Only disasm's own sources may include this.
#pragma once

#include <Zydis/Zydis.h>

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "disasm/operation.h"
#include "disasm/zydis_decoder.h"
#include "vmm/arch/arch.h"
#include "vmm/base/address.h"

namespace ringside::disasm {

/// An instruction with its operands.
struct Decoded {
  ZydisDecodedInstruction in;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;

  std::span<const ZydisDecodedOperand> all() const {
    return std::span(operands).first(in.operand_count);
  }
};

std::optional<Decoded> decode_all(std::span<const std::byte> bytes);

/// Null for a register that no trap keeps, or that is a part of one.
arch::Register register_of(ZydisRegister which);

/// Empty where an operand's registers are none that a trap keeps (xlat, gathers). `next` is where
/// the next instruction begins.
std::optional<MemoryOperand> memory_of(const ZydisDecodedOperand& operand, GuestVirt next);

}  // namespace ringside::disasm
