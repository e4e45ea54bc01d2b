// The text that an int3 or a jump of a killed tracer has replaced: it is kept before the slot, and
// the slot proves it. The slot alone would not tell the text: a jump is relocated without its
// prefixes. Used by clean(). Pure; hostile input.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "disasm/decoder.h"
#include "vmm/base/address.h"
#include "vmm/shim/jump_record.h"

namespace ringside::providers {

/// The byte, where `text`, from `address` on, begins with an int3, `byte` lies before the slot at
/// `slot`, and `code` is what that holds: if with that byte the instruction at `address`,
/// relocated, is what the slot holds. Else empty.
std::optional<std::byte> find_replaced(std::span<const std::byte> text, GuestVirt address,
                                       std::byte byte, std::span<const std::byte> code,
                                       GuestVirt slot);

/// The same of a jump: `text` begins with it, and `record` lies at `place`, where it leads to, with
/// the displaced code after it. `jump_entry` is that shim's.
inline constexpr std::size_t kLongestRecord =
    vmm::JumpRecord::kBytes + SHIM_JUMP_BYTES - 1 + disasm::kMaxSlotBytes;
std::optional<vmm::JumpBytes> find_replaced_by_jump(std::span<const std::byte> text,
                                                    GuestVirt address,
                                                    std::span<const std::byte> record,
                                                    GuestVirt place, GuestVirt jump_entry);

}  // namespace ringside::providers
