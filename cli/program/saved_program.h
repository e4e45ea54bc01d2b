// Programs that `compile` wrote and `run` reads (DOF, dif/dof/dof.h).
// Does not: verify them. The caller verifies a program before it runs.
#pragma once

#include <string>

#include "dif/program/program.h"
#include "vmm/base/result.h"

namespace ringside::cli {

Result<void> save_program(const dif::Program& program, const std::string& path);
Result<dif::Program> load_program(const std::string& path);

}  // namespace ringside::cli
