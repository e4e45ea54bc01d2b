// The error for a kernel or initrd that cannot be read, the same for all machines.
#pragma once

#include <cstdint>
#include <string>

#include "vmm/base/result.h"

namespace ringside::vmm {

enum class GuestFile : std::uint8_t { Kernel, Initrd };

/// Names the file, the reason and the way out. `reason` is an errno. NotFound when there is no such
/// file, else Io.
Error unreadable(GuestFile which, const std::string& path, int reason);

}  // namespace ringside::vmm
