// Makes the code at the beginning of two special slots, for a slot at a given address. The
// instructions are in guest-shim/slot_code.S; this patches their distances to the words that they
// use. Used by InstalledShim. Does not write a slot. Pure. Fire context: no.
#pragma once

#include <cstddef>
#include <vector>

#include "vmm/base/address.h"

namespace ringside::vmm {

/// Shim::kexec_notice(). `control`: where the guest has struct shim_control.
std::vector<std::byte> kexec_notice_code(GuestVirt slot, GuestVirt control);

/// Shim::fault_search(). `first`: where the guest has the word that leads to the list of faults.
std::vector<std::byte> fault_search_code(GuestVirt slot, GuestVirt first);

}  // namespace ringside::vmm
