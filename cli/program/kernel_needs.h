// Where a saved program may run. One that contains structure offsets of the kernel that it was
// compiled against runs where the same types are; one that contains addresses, in the same boot, or
// where nothing has moved; any other runs everywhere.
// Fire context: no.
#pragma once

#include <optional>
#include <string>

#include "cli/guest/guest.h"
#include "dif/program/program.h"
#include "vmm/base/result.h"
#include "vmm/linux/kernel_identity.h"

namespace ringside::cli {

/// Writes into the needs of a program that was compiled against this guest what tells its kernel
/// from others.
Result<void> record_kernel(dif::Program& program, const Guest& guest);
/// Unsupported when another kernel or boot runs here than the program needs, in one line that names
/// both and says what to do. `name` is the program's file.
Result<void> check_kernel(const dif::Program& program, const Guest& guest, const std::string& name);
/// The same, of one need: `release` is that of the kernel that runs, `now` what it is told by,
/// empty when it has no such module.
Result<void> check_need(const dif::KernelNeed& need, const std::string& release,
                        const std::optional<guest_linux::KernelPartIdentity>& now,
                        const std::string& name);

}  // namespace ringside::cli
