// The instructions that compilers emit all the time, decoded by a table of their opcodes. To list
// the probes of a kernel all of its text is decoded, and this takes a tenth of the decoder's time.
// Used by decode(). Does not: know any other instruction, or one with a prefix that changes what
// its opcode means.
// Pure. Fire context: yes.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "disasm/decoder.h"

namespace ringside::disasm {

/// The same as Zydis says, or empty: then it is for Zydis to say. So it is for all that is odd or
/// cut short.
std::optional<Instruction> decode_common(std::span<const std::byte> bytes, GuestVirt address);

}  // namespace ringside::disasm
