// The code at the beginning of two special slots, and the list that one of them walks. The
// instructions are in guest-shim/slot_code.S; what is here patches their distances to the words
// that they use. Used by Shim. Threads: one at a time. Fire context: no.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "vmm/base/address.h"
#include "vmm/base/result.h"
#include "vmm/shim/shim_presence.h"
#include "vmm/shim/shim_region.h"
#include "vmm/shim/shim_slots.h"

namespace ringside::vmm {

/// TrapTable::kexec_notice(). `control`: where the guest has struct shim_control.
std::vector<std::byte> kexec_notice_code(GuestVirt slot, GuestVirt control);

/// TrapTable::fault_search(). `first`: where the guest has the word that leads to the list of
/// faults.
std::vector<std::byte> fault_search_code(GuestVirt slot, GuestVirt first);

/// A list in the guest for faults of displaced instructions: for each instruction in a slot that
/// may fault, it has the address by which the kernel's exception table knows it. An entry has three
/// words among the slots (SHIM_FAULT_*); one more word points at the first entry. A new entry is
/// linked at the head by one write, so the guest may walk the list meanwhile. Entries are never
/// removed.
class FaultList {
 public:
  /// `base`: where the guest has the region mapped.
  FaultList(ShimRegion& region, const ShimPresence& presence, ShimSlots& slots, GuestVirt base)
      : region_(region), presence_(presence), slots_(slots), base_(base) {}

  /// The guest's address of the word that points at the first entry.
  Result<GuestVirt> first();
  /// TrapTable::add_fault().
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
