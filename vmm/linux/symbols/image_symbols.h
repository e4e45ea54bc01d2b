// Reads a kernel's own symbol table out of its image. VMCOREINFO tells the table's place (6.0 and
// later); otherwise the table is found by its form. Used by Kernel::discover, and by code that
// needs a few symbols before that.
#pragma once

#include <string_view>

#include "vmm/base/result.h"
#include "vmm/linux/kernel_memory.h"
#include "vmm/linux/symbols/kallsyms.h"

namespace ringside::guest_linux {

/// The error Unsupported for a kernel that ringside cannot see into. `what`: a verb phrase, "has
/// no symbol table". `option`: the option of a kernel's configuration that gives it.
Error lacks(const KernelMemory& memory, std::string_view what, std::string_view option);

Result<Kallsyms> read_kallsyms(const KernelMemory& memory);

}  // namespace ringside::guest_linux
