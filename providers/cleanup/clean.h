// Cleaning of a guest: the remains of a ringside that was killed are found, proved, and taken out,
// so that the guest is as if it had never been traced. Remains to which nothing in the guest leads
// are of another kernel, or of a tracer that died while it came or went: they are zeroed where this
// kernel keeps that memory from its allocator, else they are left alone.
// Used by the tracer before it looks at any text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"
#include "vmm/machine.h"

namespace ringside::providers {

/// A stub that somebody is inside of stays. That is an error (Invalid) for a caller that wants it
/// to go, and none for one that uses it again (leave.h).
enum class Occupied : std::uint8_t { IsAnError, IsUsedAgain };

/// Returns a line for the user that says what was found and done; empty when there was nothing.
/// Unsupported, naming it, when the process that put it there lives, and where what is there is not
/// proved to be ours to change: then nothing was written. Invalid when breakpoints have to stay.
Result<std::optional<std::string>> clean(vmm::Machine& machine, guest_linux::Kernel& kernel,
                                         Occupied occupied = Occupied::IsAnError);

}  // namespace ringside::providers
