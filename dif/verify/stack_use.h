// Whether a program ever walks the guest's kernel stack: only then the tables for it (many
// megabytes) are loaded. Also whether it records addresses of processes, and whether a value is a
// constant of the program, which needs no escaping when it is printed.
#pragma once

#include "dif/program/program.h"

namespace ringside::dif {

/// stack(), %k of one, stackdepth or caller, in any clause.
bool uses_kernel_stack(const Program& program);

/// Whether it records addresses of processes' code: ustack(), usym() and the like.
bool records_user_code(const Program& program);

/// Whether each value that a verified object can return is a constant in it: "a", x ? "a" :
/// "b", 27.
bool returns_constant(const Difo& difo);

}  // namespace ringside::dif
