// Variables of the guest's kernel that are read one by one: who has panicked, the rate of the TSC.
#pragma once

#include <cstdint>
#include <optional>

#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"

namespace ringside::guest_linux {

/// The CPU on which the kernel panicked, from panic_cpu of kernel/panic.c (5.10 to 7.2). panic_cpu
/// is -1 before a panic, and while an oops only checks whether to start a crash kernel. Empty: no
/// panic, or not known.
std::optional<std::uint32_t> panicked_cpu(const Kernel& kernel, const GuestReader& memory);

/// The rate of the TSC in kHz, from tsc_khz of arch/x86/kernel/tsc.c (5.10 to 7.2); 0 until the
/// kernel has measured it. Empty where there is no such variable, or it cannot be read.
std::optional<std::uint32_t> tsc_khz(const Kernel& kernel, const GuestReader& memory);

}  // namespace ringside::guest_linux
