// Reads a kernel's own symbol table out of its image. VMCOREINFO tells its place (6.0 and later),
// or it is found by its shape. Used by Kernel::discover, and where a few symbols are needed before
// that.
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
