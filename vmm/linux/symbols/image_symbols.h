// The symbols of the kernel whose memory this is: its own table, found in its image by what
// VMCOREINFO says (6.0 and later) or by its shape. Used by Kernel::discover, and by who must know a
// few symbols before all of the guest's memory is known.
// Fire context: no.
#pragma once

#include <string_view>

#include "vmm/base/result.h"
#include "vmm/linux/kernel_memory.h"
#include "vmm/linux/symbols/kallsyms.h"

namespace ringside::guest_linux {

/// What a kernel that ringside cannot see into lacks, and what to do.
Error lacks(const KernelMemory& memory, std::string_view what, std::string_view option);

Result<Kallsyms> read_kallsyms(const KernelMemory& memory);

}  // namespace ringside::guest_linux
