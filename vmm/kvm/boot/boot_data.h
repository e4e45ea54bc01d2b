// Writes the data that boot protocols put into the first megabyte for the kernel, each at its place
// in layout.h. Used by boot.cc. All write plain RAM and fail only where there is
// none.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "vmm/base/result.h"
#include "vmm/guest_memory.h"
#include "vmm/kernel_file/boot_headers.h"
#include "vmm/kvm/boot/boot.h"
#include "vmm/kvm/boot/layout.h"

namespace ringside::vmm::kvm {

/// Where the memory map lies that PVH's start info, or Multiboot's information, leads to.
inline constexpr std::uint64_t kMemoryMapAt = kStartInfo + 0x100;

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

/// Copies `bytes` to `at`. Limit when there is no RAM; `what` names the bytes in the message.
Result<void> put(GuestMemory& memory, std::uint64_t at, std::span<const std::byte> bytes,
                 std::string_view what);

/// Puts the command line with a NUL at kCommandLine. Limit when it has more than `most` characters
/// (or than fit there), Invalid when it holds a NUL.
Result<void> write_command_line(GuestMemory& memory, const std::string& text, std::uint64_t most);

/// The table at kBootGdt that goes with a mode: flat code at selector 0x10, flat data at 0x18.
Result<void> write_gdt(GuestMemory& memory, BootState::Mode mode);
/// Long mode's page tables at kBootTables: the first 4 GiB as they are, in 2 MiB pages, writable.
Result<void> write_identity_map(GuestMemory& memory);

/// Writes what all protocols share: command line, initrd at `initrd`, the tables of the start mode.
Result<void> write_common(GuestMemory& memory, const BootRequest& request, GuestPhys initrd,
                          std::uint64_t most_command_line, BootState::Mode mode);

/// PVH's start info at kStartInfo. `initrd`: where it was put; unused when the request has none.
Result<void> write_start_info(GuestMemory& memory, const BootRequest& request, GuestPhys initrd);
/// Linux's struct boot_params at kZeroPage. `image`: of a bzImage; null for an ELF image, which has
/// no setup header.
Result<void> write_zero_page(GuestMemory& memory, const BootRequest& request, GuestPhys initrd,
                             const BzImage* image);

}  // namespace ringside::vmm::kvm
