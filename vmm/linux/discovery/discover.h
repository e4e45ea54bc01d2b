// Finds the Linux in a machine, and in a machine with a crash kernel also the kernel that crashed.
// Used by whoever attaches to a machine or starts one; kernels that are known from their file
// before they run: file_kernel.h. Fire context: no.
#pragma once

#include <cstdint>
#include <memory>

#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"
#include "vmm/machine.h"

namespace ringside::guest_linux {

class TypeFile;  // types/type_file.h

/// AnyStage: a kernel that still boots, or has halted, will do. It is looked at, not traced.
enum class Boot : std::uint8_t { Finished, AnyStage };

/// Finds the running kernel in a machine's memory. NotFound while it has not booted far enough
/// (no VMCOREINFO yet, or system_state is not SYSTEM_RUNNING): try again later. Other errors are
/// final and say what this kernel lacks (kallsyms). `types`: a file that has its types; null: its
/// own.
Result<std::unique_ptr<Kernel>> discover_kernel(vmm::Machine& machine, Boot boot = Boot::Finished,
                                                const TypeFile* types = nullptr);

/// The kernel that crashed and started `running` as its crash kernel, to look at while the machine
/// that both are in lives. NotFound for any other kernel.
Result<std::unique_ptr<Kernel>> open_crashed_kernel(const Kernel& running);
/// Whether a vCPU with these registers has stayed in that kernel. It was stopped there for good,
/// and comes into `running` no more.
bool stays_in_crashed_kernel(const Kernel& running, const vmm::GuestMemory& memory,
                             const Registers& registers);

}  // namespace ringside::guest_linux
