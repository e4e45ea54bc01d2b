// Boots a kernel with a Multiboot 1 header: an ELF image of either class, or a flat file that gives
// its addresses. The initrd is its first module. Used by boot.cc.
#pragma once

#include "vmm/base/result.h"
#include "vmm/guest_memory.h"
#include "vmm/kernel_file/kernel_file.h"
#include "vmm/kernel_file/multiboot_header.h"
#include "vmm/kvm/boot/boot.h"

namespace ringside::vmm::kvm {

/// As load_kernel. Unsupported for a header that asks for a video mode or a feature we do not know.
Result<BootState> load_multiboot(const KernelFile& kernel, const MultibootHeader& header,
                                 const BootRequest& request, GuestMemory& memory);

}  // namespace ringside::vmm::kvm
