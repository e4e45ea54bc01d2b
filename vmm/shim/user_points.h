// The stub's end of trap points in the text of processes (guest-shim/mailbox_abi.h): writes the
// descriptions by which it knows them, and puts these into its lists. Nothing in a process changes
// here, and nothing that stands in the region is read.
// Used by Shim. Does not: know where the text lies, or whose it is.
// Threads: one at a time, beside firings. Fire context: no.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "guest-shim/mailbox_abi.h"
#include "vmm/base/address.h"
#include "vmm/base/result.h"
#include "vmm/shim/shim_layout.h"
#include "vmm/shim/shim_presence.h"
#include "vmm/shim/shim_region.h"
#include "vmm/shim/shim_slots.h"
#include "vmm/shim/trap_table.h"

namespace ringside::vmm {

class UserPoints {
 public:
  UserPoints(ShimRegion& region, const ShimPresence& presence, ShimSlots& slots, GuestVirt base)
      : region_(region), presence_(presence), slots_(slots), base_(base) {}

  /// Whether begin() was called.
  bool has_begun() const { return lists_at_ != 0; }
  /// From now on the stub looks at traps of processes: it has empty lists. Once.
  Result<void> begin();
  /// Takes room for a trap point, which is in no list yet. Returns its name.
  Result<GuestVirt> reserve();
  /// Describes it; before link().
  Result<void> describe(GuestVirt name, const UserTrapPoint& point);
  /// From now on it has a semaphore, at this offset of the file.
  Result<void> note_semaphore(GuestVirt name, std::uint64_t semaphore);
  /// Puts these into their lists: from now on the stub knows them. Each once.
  Result<void> link(std::span<const GuestVirt> names);
  /// From now on an int3 there is not ours.
  Result<void> forget(GuestVirt name);

 private:
  using Heads = std::array<std::uint32_t, SHIM_USER_LISTS>;

  Result<void> write(std::uint64_t offset, std::span<const std::byte> bytes);
  Result<void> store_head(std::uint32_t list);

  ShimRegion& region_;
  const ShimPresence& presence_;
  ShimSlots& slots_;
  const GuestVirt base_;
  std::uint64_t lists_at_ = 0;  // from the header; 0: there are none yet
  Heads heads_{};
  std::map<GuestVirt, std::uint16_t> offsets_;  // of each one in its page, by name
};

}  // namespace ringside::vmm
