// The slots of a shim: where the next slot begins, and in which slot an address lies. Slots that
// were in use when the shim was taken over are never handed out.
// Used by Shim and its parts. Does not: know what lies in a slot, or give one back.
// Threads: slot_at() on any; all else by one at a time, beside it.
// Fire context: slot_at() yes, everything else no.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "vmm/base/brief_lock.h"
#include "vmm/base/result.h"
#include "vmm/shim/shim_layout.h"
#include "vmm/shim/shim_presence.h"
#include "vmm/shim/shim_region.h"

namespace ringside::vmm {

/// A part of the slots that somebody was inside of when the shim was taken over: offsets from the
/// first slot.
struct OccupiedSlots {
  std::uint64_t begin = 0, end = 0;
};

/// Offsets from the header.
struct SlotExtent {
  std::uint64_t begin = 0, end = 0;
};

class ShimSlots {
 public:
  /// `base`: where the guest has the region mapped. `occupied`: by address.
  ShimSlots(ShimRegion& region, const ShimPresence& presence, const ShimLayout& layout,
            GuestVirt base, std::vector<OccupiedSlots> occupied);

  /// TrapTable::allocate_slot().
  Result<GuestVirt> allocate(std::size_t size);
  /// Aligned: the guest reads them and never writes there. An offset from the header.
  Result<std::uint64_t> allocate_words(std::size_t words);
  /// TrapTable::slot_room().
  std::uint64_t room() const { return layout_.slots_bytes - slot_bytes_; }
  /// Whether the address lies where slots were handed out.
  bool contains(GuestVirt slot) const;
  /// TrapTable::write_slot().
  Result<void> write(GuestVirt slot, std::span<const std::byte> code);
  /// The slot in which an offset from the header lies; empty before the first one.
  std::optional<SlotExtent> slot_at(std::uint64_t offset) const;
  /// Up to where bytes of ours may lie, from the first slot on.
  std::uint64_t used_bytes() const;

 private:
  void note(std::uint32_t offset);

  ShimRegion& region_;
  const ShimPresence& presence_;
  const ShimLayout layout_;
  const GuestVirt base_;
  const std::vector<OccupiedSlots> occupied_;
  std::size_t slot_bytes_ = 0;  // allocated so far, up to here
  mutable BriefLock begins_lock_;
  std::vector<std::uint32_t> begins_;  // where each begins, from the header on; in this order
};

}  // namespace ringside::vmm
