// Parses the registers that QEMU prints for people (`info registers -a`). No others are available
// while somebody else uses its gdbstub, or while the guest runs. Format: x86_cpu_dump_state(),
// target/i386/cpu-dump.c, QEMU 5.2 to 10. It lacks kernel_gs_base, which is 0 here.
// Pure. Hostile input: the text is a compromised QEMU's.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "vmm/arch/arch.h"
#include "vmm/base/result.h"

namespace ringside::vmm {

/// The registers of the vCPUs with these numbers of QEMU's, in this order. Invalid if the text has
/// other vCPUs, or lacks a register.
Result<std::vector<Registers>> read_register_dump(std::string_view text,
                                                  std::span<const unsigned> numbers);

}  // namespace ringside::vmm
