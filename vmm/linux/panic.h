// Whether the guest's kernel has panicked.
#pragma once

#include <cstdint>
#include <optional>

#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"

namespace ringside::guest_linux {

/// The CPU on which it did, from panic_cpu of kernel/panic.c (5.10 to 7.2), which is -1 until then
/// and while an oops only looks whether it is to start a crash kernel. Empty: it has not, or that
/// cannot be told.
std::optional<std::uint32_t> panicked_cpu(const Kernel& kernel, const GuestReader& memory);

}  // namespace ringside::guest_linux
