// Types of the kernel's variables. The BTF of newer kernels has them all. Other kernels have only
// those of per-CPU variables, so this has a table of variables that tracing programs use. Used by
// the compiler's environment. Does not: know whether a guest has the variable.
#pragma once

#include <optional>
#include <string_view>

#include "vmm/base/c_type.h"
#include "vmm/base/guest_reader.h"

namespace ringside::guest_linux {

/// The type of vmlinux's variable `name`; empty when it is not known, or the guest does not have
/// its structure. An array of characters is as long as the text at `address`, or 256 where that
/// cannot be read. Sources: the kernel's headers, the same from 5.4 to 6.12.
std::optional<TypeId> variable_type(TypeGraph& types, std::string_view name,
                                    const GuestReader& kernel, GuestVirt address);

}  // namespace ringside::guest_linux
