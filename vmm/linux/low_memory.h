// Finds memory in the first megabyte that a running Linux never uses, for the shim of a machine
// where no memory was set aside. Since 5.13 Linux reserves all of the first megabyte and uses
// little of it: the real-mode trampoline and the firmware's data. Everything is checked: a page is
// RAM, its struct page says that it is reserved (so the allocator never hands it out), it is all
// zeros, and it lies below the trampoline. Used to install the shim. Does not: write anything.
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

/// Checks that the kernel keeps every page of `extent` from its allocator, and that its real-mode
/// trampoline does not lie there; otherwise Invalid. Then the remains of an earlier tracer can be
/// cleared.
Result<void> check_kept(const vmm::GuestMemory& memory, const Kernel& kernel,
                        vmm::GuestMemory::Extent extent);

}  // namespace ringside::guest_linux
