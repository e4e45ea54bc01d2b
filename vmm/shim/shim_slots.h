// The slots of a shim, with the blocks of its table among them: where the next one begins, and in
// which an address lies. Slots that were in use when the shim was taken over are never handed out.
// Used by Shim and its parts. Does not: know what lies in a slot, or give one back.
// Threads: slot_at() on any; all else by one at a time, beside it.
// Fire context: slot_at() yes, everything else no.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "guest-shim/mailbox_abi.h"
#include "vmm/base/brief_lock.h"
#include "vmm/base/result.h"
#include "vmm/shim/shim_layout.h"
#include "vmm/shim/shim_presence.h"
#include "vmm/shim/shim_region.h"
#include "vmm/shim/trap_table.h"

namespace ringside::vmm {

/// A part of the slots that somebody was inside of when the shim was taken over: offsets from the
/// table's beginning.
struct OccupiedSlots {
  std::uint64_t begin = 0, end = 0;
};

/// Offsets from the header.
struct SlotExtent {
  std::uint64_t begin = 0, end = 0;
};

class ShimSlots {
 public:
  /// The table lies before the first slot.
  static constexpr std::uint64_t kTableBytes = SHIM_TABLE_WORDS * sizeof(std::uint16_t);

  /// `base`: where the guest has the region mapped. `occupied`: by address.
  ShimSlots(ShimRegion& region, const ShimPresence& presence, const ShimLayout& layout,
            GuestVirt base, std::vector<OccupiedSlots> occupied);

  /// TrapTable::allocate_slot().
  Result<GuestVirt> allocate(std::size_t size);
  /// Of the table: begins a whole number of its units behind it. An offset from the header.
  /// `reserved`: so many bytes were kept for it, and are no more.
  Result<std::uint64_t> allocate_block(std::size_t size, std::uint64_t reserved = 0);
  /// Keeps so many bytes for blocks, which nothing else gets.
  void reserve(std::uint64_t bytes) { reserved_ += bytes; }
  /// Aligned: the guest reads them and never writes there. An offset from the header.
  Result<std::uint64_t> allocate_words(std::size_t words);
  /// TrapTable::slot_room().
  std::uint64_t room() const;
  /// The error where there is no room left.
  tl::unexpected<Error> used_up() const;
  /// Whether a slot may begin at this offset from the region's.
  bool may_begin_at(std::uint64_t offset) const;
  /// TrapTable::write_slot().
  Result<void> write(GuestVirt slot, std::span<const std::byte> code, SlotHeader header = {});
  /// Says before the slot at this offset whether its trap points record, and by which list.
  Result<void> set_list(std::uint64_t slot, std::optional<std::uint8_t> list);
  /// The slot in which an offset from the header lies; empty before the first one.
  std::optional<SlotExtent> slot_at(std::uint64_t offset) const;
  /// Up to where bytes of ours may lie, from the table's beginning on.
  std::uint64_t used_bytes() const;

 private:
  Result<std::uint64_t> take(std::uint64_t size, std::uint64_t unit, std::uint64_t before,
                             std::uint64_t kept);
  Result<void> write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  void note(std::uint32_t offset);

  ShimRegion& region_;
  const ShimPresence& presence_;
  const ShimLayout layout_;
  const GuestVirt base_;
  const std::vector<OccupiedSlots> occupied_;
  std::uint64_t slot_bytes_ = kTableBytes;  // allocated so far, up to here
  std::uint64_t reserved_ = 0;
  std::map<std::uint64_t, std::uint8_t> lists_;  // what is written before slots, where it is not 0
  mutable BriefLock begins_lock_;
  std::vector<std::uint32_t> begins_;  // where each begins, from the header on; in this order
};

}  // namespace ringside::vmm
