// The header by which a kernel says that it follows Multiboot 1 (Multiboot Specification 0.6.96,
// 3.1): three words in the first 8 KiB of the file, and perhaps addresses.
// Used by KernelFile (is it a kernel?) and vmm/kvm/boot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ringside::vmm {

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
