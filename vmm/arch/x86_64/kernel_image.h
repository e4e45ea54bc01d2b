// Where Linux maps its own image, and after it its modules: the top of every address space
// (arch/x86/include/asm/page_64_types.h).
// Fire context: yes.
#pragma once

#include <cstdint>

#include "vmm/base/address.h"

namespace ringside::arch {

inline constexpr GuestVirt kKernelImage{0xffff'ffff'8000'0000};  // __START_KERNEL_map
/// KERNEL_IMAGE_SIZE: modules begin there. The smaller one is that without CONFIG_RANDOMIZE_BASE.
inline constexpr std::uint64_t kKernelImageSize = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kSmallKernelImageSize = std::uint64_t{512} << 20;

}  // namespace ringside::arch
