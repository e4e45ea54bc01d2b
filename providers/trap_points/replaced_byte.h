// Finds the text that an int3 or a jump of a killed tracer has replaced. The text is kept before
// the slot, and the code in the slot proves it. The slot alone is not enough: a jump is relocated
// without its prefixes. Used by clean(). Pure; hostile input.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "disasm/decoder.h"
#include "vmm/base/address.h"
#include "vmm/shim/jump_record.h"

namespace ringside::providers {

/// The byte that an int3 has replaced. `text` begins at `address` with the int3, `byte` lies before
/// the slot at `slot`, and `code` is the slot's content. If the instruction at `address` with that
/// byte, relocated to the slot, is `code`, the byte is proved; otherwise empty.
std::optional<std::byte> find_replaced(std::span<const std::byte> text, GuestVirt address,
                                       std::byte byte, std::span<const std::byte> code,
                                       GuestVirt slot);

/// The same for a jump: `text` begins with the jump, and `record` is its record at `place`, with
/// the displaced code after it. `jump_entry` is the one of that shim.
inline constexpr std::size_t kLongestRecord =
    vmm::JumpRecord::kBytes + SHIM_JUMP_BYTES - 1 + disasm::kMaxSlotBytes;
std::optional<vmm::JumpBytes> find_replaced_by_jump(std::span<const std::byte> text,
                                                    GuestVirt address,
                                                    std::span<const std::byte> record,
                                                    GuestVirt place, GuestVirt jump_entry);

}  // namespace ringside::providers
