// Memory below the first megabyte that a running Linux never uses, for the shim of a machine where
// nobody set memory aside. Linux has kept all of the first megabyte for itself since 5.13 and uses
// little of it: the trampoline of its real mode, and what the firmware left.
// Nothing is taken on trust: every page is RAM, is reserved as the kernel's own struct page says
// (its allocator never hands it out), is all zeros, and lies below the trampoline.
// Used by who installs the shim. Does not: write anything.
// Fire context: no.
#pragma once

#include "vmm/base/result.h"
#include "vmm/guest_memory.h"
#include "vmm/linux/kernel.h"

namespace ringside::guest_linux {

/// The longest run of such pages. Unsupported, with the reason, where it is shorter than 64 KiB or
/// the kernel lacks what is needed to know (the symbols real_mode_header and vmemmap_base, the type
/// of struct page).
Result<vmm::GuestMemory::Extent> find_low_memory(const vmm::GuestMemory& memory,
                                                 const Kernel& kernel);

}  // namespace ringside::guest_linux
