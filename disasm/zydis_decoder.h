// The one Zydis call that disasm's own sources share. Only they may include this and
// zydis_operands.h; no other header mentions a decoder's types.
#pragma once

#include <Zydis/Zydis.h>

#include <cstddef>
#include <optional>
#include <span>

#include "disasm/decoder.h"

namespace ringside::disasm {

/// Decodes without operands (a third of the cost); prefixes, ModRM, displacement and immediate
/// positions are all in `raw`.
std::optional<ZydisDecodedInstruction> decode_raw(std::span<const std::byte> bytes);

/// The neutral form of a decoded instruction that lies at `address`.
Instruction summarize(const ZydisDecodedInstruction& raw, GuestVirt address);

}  // namespace ringside::disasm
