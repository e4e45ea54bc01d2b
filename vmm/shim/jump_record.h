// The record that a jump in an int3's stead leads to. It lies among the slots, in the layout of
// guest-shim/mailbox_abi.h. It tells the shim the address, restores nothing but flags, and goes on
// with the displaced instructions. The bytes that the jump has replaced stand before it, for the
// ringside that comes after we have died.
// Used by the tracepoint table and to take a guest over. Pure. Fire context: yes.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "guest-shim/mailbox_abi.h"
#include "vmm/base/address.h"

namespace ringside::vmm {

using JumpBytes = std::array<std::byte, SHIM_JUMP_BYTES>;

/// jmp rel32 at `from`; empty when `to` is out of reach.
std::optional<JumpBytes> jump_between(GuestVirt from, GuestVirt to);
/// Where such a jump at `from` leads; empty when these bytes are none.
std::optional<GuestVirt> jump_target(GuestVirt from, const JumpBytes& bytes);

struct JumpRecord {
  GuestVirt address;   // of the jump: in the top 2 GiB
  JumpBytes replaced;  // what stood there

  /// Where the jump leads, and the displaced code, from the record's beginning.
  static constexpr std::size_t kEntry = 4 + SHIM_JUMP_BYTES;
  static constexpr std::size_t kBytes = kEntry + SHIM_JUMP_CALL_END + 1;
  using Bytes = std::array<std::byte, kBytes>;

  /// The record at `place`; the displaced code follows it. `jump_entry` is the shim's (Shim).
  Bytes encode(GuestVirt place, GuestVirt jump_entry) const;
  /// Empty when it is none of that shim's.
  static std::optional<JumpRecord> decode(const Bytes& bytes, GuestVirt place,
                                          GuestVirt jump_entry);
};

}  // namespace ringside::vmm
