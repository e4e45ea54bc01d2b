// Where a kernel and its initrd go in RAM below the hole: free of what else lies there, and of each
// other. Used by boot.cc. Pure: writes nothing. Fire context: no.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/guest_memory.h"

namespace ringside::vmm::kvm {

/// What a kernel wants. Either pieces at addresses of its own (ELF), or one that may move
/// (bzImage).
struct KernelRoom {
  std::vector<GuestMemory::Extent> pieces;
  std::uint64_t alignment = 0;  // not 0: the only piece may go to any multiple of this instead
  std::uint64_t initrd_end = UINT64_MAX;  // the initrd ends here or lower
};

struct Placement {
  GuestPhys kernel;  // of the first piece
  GuestPhys initrd;  // page-aligned, as high as can be; 0 without one
};

/// Invalid when a piece lies where no amount of RAM puts any, or where RAM serves something else;
/// Limit when there is too little, with the --memory that would do. `name`: the kernel's.
Result<Placement> place_kernel(const KernelRoom& room, std::uint64_t initrd_size,
                               std::uint64_t ram_size, std::string_view name);

}  // namespace ringside::vmm::kvm
