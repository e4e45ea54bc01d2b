// The list by which a guest that traps in a displaced instruction finds where the kernel mends its
// fault: entries of three words among the slots (SHIM_FAULT_*), and a word that leads to the first.
// The code that walks it is guest-shim/slot_code.S's. It grows at its head, by one word, so that
// the guest may walk it meanwhile; no entry ever goes. Used by InstalledShim. Threads: one at a
// time. Fire context: no.
#pragma once

#include <cstdint>
#include <optional>

#include "vmm/base/address.h"
#include "vmm/base/result.h"
#include "vmm/shim/shim_presence.h"
#include "vmm/shim/shim_region.h"
#include "vmm/shim/shim_slots.h"

namespace ringside::vmm {

class FaultList {
 public:
  /// `base`: where the guest has the region mapped.
  FaultList(ShimRegion& region, const ShimPresence& presence, ShimSlots& slots, GuestVirt base)
      : region_(region), presence_(presence), slots_(slots), base_(base) {}

  /// Where the guest has the word that leads to the first entry.
  Result<GuestVirt> first();
  /// Shim::add_fault().
  Result<void> add(GuestVirt slot, GuestVirt place);

 private:
  Result<std::uint64_t> first_offset();

  ShimRegion& region_;
  const ShimPresence& presence_;
  ShimSlots& slots_;
  const GuestVirt base_;
  std::optional<std::uint64_t> first_;  // where that word lies; none before it is asked for
  std::uint64_t newest_ = 0;            // what that word is: an address in the guest
};

}  // namespace ringside::vmm
