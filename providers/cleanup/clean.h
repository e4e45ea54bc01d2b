// Cleans a guest: finds what a killed ringside has left in it, proves that it is ringside's, and
// takes it out, so that the guest is as it was before the trace. If nothing in the guest leads to
// the remains, they belong to another kernel, or to a tracer that died while it attached or left.
// Such remains are zeroed if this kernel keeps that memory from its allocator; otherwise they are
// left alone.
// Used by the tracer before it looks at any text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"
#include "vmm/machine.h"

namespace ringside::providers {

/// A stub stays while a vCPU or a task is inside it. That is an error (Invalid) if the caller wants
/// it gone, and no error if the caller uses it again (leave.h).
enum class Occupied : std::uint8_t { IsAnError, IsUsedAgain };

/// Returns a line for the user that says what was found and done; empty when there was nothing.
/// Unsupported, and nothing was written: the process that installed the stub lives (the error names
/// it), or the remains are not proved to be ours. Invalid when breakpoints have to stay.
Result<std::optional<std::string>> clean(vmm::Machine& machine, guest_linux::Kernel& kernel,
                                         Occupied occupied = Occupied::IsAnError);

}  // namespace ringside::providers
