// Writes a machine's memory and registers as an ELF core (elf_core.h has the form): RAM as PT_LOAD
// with its guest-physical addresses, NT_PRSTATUS and "QEMU" notes for each vCPU, and the kernel's
// VMCOREINFO, which crash and makedumpfile ask for. Pages of zeros become holes of the file.
// Used by snapshot(). Does not: pause the machine, find VMCOREINFO.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "vmm/machine.h"

namespace ringside::vmm {

struct WrittenCore {
  std::uint64_t memory = 0;  // bytes of RAM
  std::uint64_t stored = 0;  // bytes that were not zero pages
};

/// Called now and then with the bytes of RAM that were looked at, of `all`; false gives up.
using CoreProgress = std::function<bool(std::uint64_t done, std::uint64_t all)>;

struct CoreContents {
  std::span<const Registers> vcpus;
  std::string_view vmcoreinfo;  // empty: none is known
};

/// Makes the file, which may not exist yet, for its owner alone. On failure none is left; the error
/// says why and names it. MachineGone when memory cannot be read any more.
Result<WrittenCore> write_elf_core(PausedMachine& machine, const CoreContents& contents,
                                   const std::string& path, const CoreProgress& progress = {});

}  // namespace ringside::vmm
