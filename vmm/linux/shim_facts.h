// The facts about a running kernel that the installer of a shim needs (vmm/shim/shim_image.h), from
// its symbols and types. Used by who installs a shim or takes one out.
#pragma once

#include <optional>

#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"
#include "vmm/machine.h"
#include "vmm/shim/fetch_list.h"
#include "vmm/shim/shim_image.h"

namespace ringside::guest_linux {

/// For the stub's loads of the guest's memory. Empty if the kernel does not tell where it maps its
/// RAM.
std::optional<vmm::FetchFacts> find_fetch_facts(const vmm::GuestMemory& memory,
                                                const Kernel& kernel);

/// Unsupported, naming the symbol, when one is missing.
Result<vmm::ShimKernelFacts> find_shim_facts(vmm::Machine& machine, Kernel& kernel);

/// Whether processes may have shadow stacks, by which the processor checks returns. Invalid: the
/// guest's memory cannot be read.
Result<bool> has_user_shadow_stacks(const vmm::GuestMemory& memory, const Kernel& kernel);

}  // namespace ringside::guest_linux
