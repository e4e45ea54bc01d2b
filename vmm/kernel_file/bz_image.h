// Reads a bzImage: the setup header of Linux's boot protocol for x86
// (Documentation/arch/x86/boot.rst, read for 2.12 and later: Linux 3.8 on), and its parts.
// Used by KernelFile (the packed ELF image) and vmm/kvm/boot (how to start it).
// Does not: load or unpack anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "vmm/base/result.h"

namespace ringside::vmm {

struct BzImage {
  std::uint16_t version = 0;  // of the protocol, 0x020c: 2.12
  bool kernel_64 = false;     // XLF_KERNEL_64: the kernel has the 64-bit entry point
  bool relocatable = false;
  std::uint32_t alignment = 0;        // of the load address, when relocatable
  std::uint32_t command_line = 0;     // characters at most, without the NUL
  std::uint32_t initrd_last = 0;      // highest address that a byte of the initrd may have
  std::uint64_t preferred_start = 0;  // load address
  std::uint32_t init_size = 0;        // bytes from the load address on that the kernel works in
  /// The setup header as it is in the file, from kSetupHeader on: it goes into the zero page.
  std::span<const std::byte> header;
  std::span<const std::byte> protected_mode;  // the part that is loaded
  std::span<const std::byte> payload;         // the packed ELF image, empty when there is none
};

inline constexpr std::size_t kSetupHeader = 0x1f1;

/// Whether it has the magic number of a bzImage.
bool is_bz_image(std::span<const std::byte> file);
/// The parts lie in `file`, which must outlive the result. Invalid when one lies outside of it: the
/// file, called `name` in messages, is cut short.
Result<BzImage> read_bz_image(std::span<const std::byte> file, std::string_view name);

}  // namespace ringside::vmm
