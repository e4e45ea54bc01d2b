// Types of the kernel's variables. BTF has none of them but the per-CPU ones, so those that tracing
// programs ask for are known here. Used by the compiler's environment.
// Does not: know whether a guest has the variable.
// Fire context: no.
#pragma once

#include <optional>
#include <string_view>

#include "vmm/base/c_type.h"
#include "vmm/base/guest_reader.h"

namespace ringside::guest_linux {

/// The type of vmlinux's variable `name`; nothing for those that are not known, or whose structure
/// the guest does not have. An array of characters is as long as the text at `address`, 256 where
/// that cannot be read. Sources: the kernel's headers, alike in 5.4 to 6.12.
std::optional<TypeId> variable_type(TypeGraph& types, std::string_view name,
                                    const GuestReader& kernel, GuestVirt address);

}  // namespace ringside::guest_linux
