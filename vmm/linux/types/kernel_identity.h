// Identifies the build of a kernel, for programs that were compiled against one and run on another.
// Sources: vmlinux's ELF notes (__start_notes to __stop_notes;
// NT_GNU_BUILD_ID of the ELF-64 note format), which the running kernel keeps in its memory;
// VMCOREINFO's BUILD-ID is garbage in some releases (5.15.168, 6.1.113, 6.6.55 and others). BTF:
// vmm/linux/types/btf.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"

namespace ringside::guest_linux {

/// Hashes are FNV-1a of 64 bits, so they mean the same in every version of ringside.
struct KernelPartIdentity {
  /// The build id in hexadecimal digits; for modules, and kernels without one, "names-" and a hash
  /// of all symbols' names.
  std::string build;
  std::uint64_t types = 0;  // hash of the BTF: equal bytes are equal layouts; 0 without
};

/// The build id in a row of ELF notes, in hexadecimal digits; empty when there is none.
std::string build_id_in(std::span<const std::byte> notes);

/// The build id of vmlinux in hexadecimal digits; empty for a kernel without one, or with notes
/// that cannot be read.
std::string find_build_id(const SymbolTable& symbols, const GuestReader& memory);

/// The identity of "vmlinux" or of a module; empty when there is no such part. Only before
/// end_set_up(). `memory` reads the kernel's memory; notes that cannot be read count as missing.
std::optional<KernelPartIdentity> identify(Kernel& kernel, const GuestReader& memory,
                                           std::string_view module);

}  // namespace ringside::guest_linux
