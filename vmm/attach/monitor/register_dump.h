// The registers that QEMU prints for people (`info registers -a`): the only ones it shows while
// somebody else has its gdbstub, and without being stopped. Format: x86_cpu_dump_state(),
// target/i386/cpu-dump.c, QEMU 5.2 to 10. It lacks kernel_gs_base, which is 0 here.
// Pure. Hostile input: the text is a compromised QEMU's.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "vmm/arch/arch.h"
#include "vmm/base/result.h"

namespace ringside::vmm {

/// Those of the vCPUs that QEMU numbers so, in this order. Invalid when the text is not of just
/// these, or lacks a register.
Result<std::vector<Registers>> read_register_dump(std::string_view text,
                                                  std::span<const unsigned> numbers);

}  // namespace ringside::vmm
