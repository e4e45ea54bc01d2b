// What boot protocols leave in the first megabyte for a kernel to find, each at its place in
// layout.h. Used by boot.cc and multiboot.cc. All write plain RAM and fail only where there is
// none. Fire context: no.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "vmm/base/result.h"
#include "vmm/guest_memory.h"
#include "vmm/kernel_file/bz_image.h"
#include "vmm/kvm/boot/boot.h"

namespace ringside::vmm::kvm {

/// Copies `bytes` there; Limit, with `what` in the message, when there is no RAM.
Result<void> put(GuestMemory& memory, std::uint64_t at, std::span<const std::byte> bytes,
                 std::string_view what);

/// The command line with its NUL at kCommandLine. Limit when it has more than `most` characters (or
/// than fit there), Invalid when it holds a NUL.
Result<void> write_command_line(GuestMemory& memory, const std::string& text, std::uint64_t most);

/// The table at kBootGdt that goes with a mode: flat code at selector 0x10, flat data at 0x18.
Result<void> write_gdt(GuestMemory& memory, BootState::Mode mode);
/// Long mode's page tables at kBootTables: the first 4 GiB as they are, in 2 MiB pages, writable.
Result<void> write_identity_map(GuestMemory& memory);

/// What every protocol wants: command line, initrd, and the tables of the mode it starts in.
Result<void> write_common(GuestMemory& memory, const BootRequest& request, GuestPhys initrd,
                          std::uint64_t most_command_line, BootState::Mode mode);

/// PVH's start info at kStartInfo. `initrd`: where it was put; unused when the request has none.
Result<void> write_start_info(GuestMemory& memory, const BootRequest& request, GuestPhys initrd);
/// Linux's struct boot_params at kZeroPage. `image`: of a bzImage; null for an ELF image, which has
/// no setup header.
Result<void> write_zero_page(GuestMemory& memory, const BootRequest& request, GuestPhys initrd,
                             const BzImage* image);

}  // namespace ringside::vmm::kvm
