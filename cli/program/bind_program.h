// Binds a compiled program, which may be a saved one, to the kernel of a target. The program refers
// to parts of a kernel by name (dif/bind/bind.h). A type without a name is known by a hash of all
// types of its module, or of vmlinux.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "dif/d/compile.h"
#include "dif/program/program.h"
#include "providers/tracer/target.h"
#include "vmm/base/result.h"
#include "vmm/linux/types/kernel_identity.h"

namespace ringside::cli {

/// Writes into the needs of a program that was compiled against this target what tells its kernel
/// from others.
Result<void> record_kernel(dif::Program& program, const providers::Target& target);
/// Where a program was compiled: with the kernel that it is bound to, or perhaps with another one.
enum class CompiledFor : std::uint8_t { ThisKernel, Any };
/// `name` is the program's, for the error, which says in one line what this kernel lacks, and what
/// to do.
Result<dif::Program> bind_program(const dif::Program& program, const providers::Target& target,
                                  d::Environment& environment, const std::string& name,
                                  CompiledFor kernel);
/// Refuses a program if one need is not met. `release` is the running kernel's; `now` identifies
/// its part that the need names, and is empty if the kernel has no such module.
Result<void> check_need(const dif::KernelNeed& need, const std::string& release,
                        const std::optional<guest_linux::KernelPartIdentity>& now,
                        const std::string& name);

}  // namespace ringside::cli
