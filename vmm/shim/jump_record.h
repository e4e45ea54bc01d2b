// The record to which a jump in place of an int3 leads. It lies among the slots;
// guest-shim/mailbox_abi.h has its layout. Its code calls the shim, which knows the address by the
// return address, then restores the flags and runs the displaced instructions. The bytes that the
// jump has replaced are kept before the code, for the next ringside if we die.
// Used by the trap point table and to take a guest over. Pure. Fire context: yes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "guest-shim/mailbox_abi.h"
#include "vmm/base/address.h"

namespace ringside::vmm {

using JumpBytes = std::array<std::byte, SHIM_JUMP_BYTES>;

/// jmp rel32 at `from`; empty when `to` is out of reach.
std::optional<JumpBytes> jump_between(GuestVirt from, GuestVirt to);
/// The target of such a jump at `from`; empty if these bytes are no jump.
std::optional<GuestVirt> jump_target(GuestVirt from, const JumpBytes& bytes);

struct JumpRecord {
  GuestVirt address;   // of the jump: in the top 2 GiB
  JumpBytes replaced;  // what stood there
  /// Its traps go into rings by this fetch list, and wait for nobody; empty: they wait.
  std::optional<std::uint8_t> recording = std::nullopt;

  /// The offsets in a record of the place where the jump leads, and of the displaced code.
  static constexpr std::size_t kEntry = 5 + SHIM_JUMP_BYTES;
  static constexpr std::size_t kBytes = kEntry + SHIM_JUMP_CALL_END + 1;
  using Bytes = std::array<std::byte, kBytes>;

  /// The record at `place`; the displaced code follows it. `jump_entry` is the shim's (Shim).
  Bytes encode(GuestVirt place, GuestVirt jump_entry) const;
  /// Empty when it is none of that shim's.
  static std::optional<JumpRecord> decode(const Bytes& bytes, GuestVirt place,
                                          GuestVirt jump_entry);
};

}  // namespace ringside::vmm
