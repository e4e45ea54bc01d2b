// The decoders behind decoder.h: a table of common instructions, and Zydis. Only disasm's own
// sources may include this; no other header mentions Zydis's types.
#pragma once

#include <Zydis/Zydis.h>

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "disasm/decoder.h"
#include "vmm/arch/arch.h"
#include "vmm/base/address.h"

namespace ringside::disasm {

/// The instructions that compilers emit all the time, by a table of their opcodes. To list the
/// probes of a kernel all of its text is decoded, and this takes a tenth of Zydis's time. The same
/// as Zydis says, or empty: then it is for Zydis to say. So it is for all that is odd or cut short,
/// and for a prefix that changes what an opcode means.
/// Fire context: yes.
std::optional<Instruction> decode_common(std::span<const std::byte> bytes, GuestVirt address);

/// Decodes without operands (a third of the cost); prefixes, ModRM, displacement and immediate
/// positions are all in `raw`.
std::optional<ZydisDecodedInstruction> decode_raw(std::span<const std::byte> bytes);

/// The neutral form of a decoded instruction that lies at `address`.
Instruction summarize(const ZydisDecodedInstruction& raw, GuestVirt address);

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
/// the next instruction begins. The address of a lea is one without a segment.
std::optional<MemoryOperand> memory_of(const ZydisDecodedOperand& operand, GuestVirt next);

/// Finds the effect of a decoded instruction and its operands, where they can be evaluated; all
/// else of `out` is known.
void take_effect(const Decoded& of, Operation& out);

}  // namespace ringside::disasm
