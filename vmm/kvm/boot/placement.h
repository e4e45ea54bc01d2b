// Chooses places for a kernel and its initrd in RAM below the hole, clear of everything else there.
// Used by boot.cc. Pure: writes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/guest_memory.h"

namespace ringside::vmm::kvm {

/// The room that a kernel needs: pieces at fixed addresses (ELF), or one that may move (bzImage).
struct KernelRoom {
  std::vector<GuestMemory::Extent> pieces;
  std::uint64_t alignment = 0;            // not 0: the only piece may go to any multiple of it
  std::uint64_t initrd_end = UINT64_MAX;  // the initrd ends here or lower
};

struct Placement {
  GuestPhys kernel;  // of the first piece
  GuestPhys initrd;  // page-aligned, as high as possible; 0 without one
};

/// Sizes in bytes; `name` is the kernel's, for messages. Invalid when a piece lies where a machine
/// never has RAM, or where RAM is used for something else. Limit when there is too little RAM, with
/// the --memory that would do.
Result<Placement> place_kernel(const KernelRoom& room, std::uint64_t initrd_size,
                               std::uint64_t ram_size, std::string_view name);

}  // namespace ringside::vmm::kvm
