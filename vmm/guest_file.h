// Words for a kernel or initrd that cannot be read, the same for all machines.
// Fire context: no.
#pragma once

#include <cstdint>
#include <string>

#include "vmm/base/result.h"

namespace ringside::vmm {

enum class GuestFile : std::uint8_t { Kernel, Initrd };

/// The file, the reason (errno's value), and the way out. NotFound when there is none, else Io.
Error unreadable(GuestFile which, const std::string& path, int reason);

}  // namespace ringside::vmm
