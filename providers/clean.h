// Cleaning of a guest: the remains of a ringside that was killed are found, proved, and taken out,
// so that the guest is as if it had never been traced.
// Used before a guest is traced, and by whoever wants nothing else.
#pragma once

#include <optional>
#include <string>

#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"
#include "vmm/machine.h"

namespace ringside::providers {

/// Returns a line for the user that says what was found and done; empty when there was nothing.
/// Unsupported, naming it, when the one who put it there lives, and where what is there is not
/// proved to be ours to change: then nothing was written. Invalid when some of it has to stay.
Result<std::optional<std::string>> clean(vmm::Machine& machine, guest_linux::Kernel& kernel);

}  // namespace ringside::providers
