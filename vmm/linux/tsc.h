// The rate of the guest's TSC, as its kernel has measured it.
#pragma once

#include <cstdint>
#include <optional>

#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"

namespace ringside::guest_linux {

/// kHz, from tsc_khz of arch/x86/kernel/tsc.c (5.10 to 7.2); 0 until the kernel has measured it.
/// Empty where there is no such variable, or it cannot be read.
std::optional<std::uint32_t> tsc_khz(const Kernel& kernel, const GuestReader& memory);

}  // namespace ringside::guest_linux
