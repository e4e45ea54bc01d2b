// Text that a Linux kernel rewrites once while it boots, before other CPUs run, read from the
// tables in its file:
//   .altinstructions    struct alt_instr { s32 instr_offset, repl_offset; ... u8 instrlen, ... },
//                       packed, its layout by the kernel's own types (12 bytes in 6.1, 14 in 6.12)
//   .parainstructions   struct paravirt_patch_site { u64 instr; u8 type, len; }, 16 bytes (to 6.7)
//   .retpoline_sites .return_sites .call_sites .ibt_endbr_seal .smp_locks, runtime_*
//                       s32 each, relative to itself
// (arch/x86/include/asm/alternative.h, paravirt_types.h, runtime-const.h; arch/x86/kernel/
// vmlinux.lds.S.) The kernel would take an int3 there for its own text, warn, and overwrite it.
// Used by the kernel from a file. Pure. Hostile input: sizes are checked, counts bounded.
#pragma once

#include <optional>
#include <vector>

#include "vmm/base/c_type.h"
#include "vmm/kernel_file/elf_file.h"
#include "vmm/linux/kernel.h"

namespace ringside::guest_linux {

/// All such text, sorted, at its linked addresses. Empty when the file has no section names, or its
/// types do not describe the alternatives: then any text may be patched.
std::optional<std::vector<Kernel::PatchedSite>> find_boot_patches(const vmm::ElfFile& image,
                                                                  const TypeGraph& types);

}  // namespace ringside::guest_linux
