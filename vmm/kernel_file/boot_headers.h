// The headers by which a kernel file says how it is started. Of a bzImage it is the setup header of
// Linux's boot protocol for x86 (Documentation/arch/x86/boot.rst, read for 2.12 and later:
// Linux 3.8 on), which also tells its parts. Of Multiboot 1 (Multiboot Specification 0.6.96, 3.1)
// it is three words in the first 8 KiB of the file, and perhaps addresses. Used by KernelFile (is
// it a kernel? where is its ELF image?) and vmm/kvm/boot (how to start it). Does not: load or
// unpack anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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

struct MultibootHeader {
  std::size_t at = 0;  // in the file
  std::uint32_t flags = 0;
  /// Guest-physical addresses of the file's parts, when the header has them (flag 16).
  struct Addresses {
    std::uint32_t header = 0;    // of this header
    std::uint32_t load = 0;      // of the first byte that is loaded
    std::uint32_t load_end = 0;  // 0: up to the end of the file
    std::uint32_t bss_end = 0;   // 0: no bss
    std::uint32_t entry = 0;
  };
  std::optional<Addresses> addresses;
};

/// The first header with a right checksum; empty when there is none.
std::optional<MultibootHeader> find_multiboot_header(std::span<const std::byte> file);

}  // namespace ringside::vmm
