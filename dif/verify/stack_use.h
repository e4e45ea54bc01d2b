// Whether a program ever follows the guest's kernel stack: the tables for that (many megabytes) are
// not loaded for a program that does not. The same for processes' addresses. And whether a value is
// the program's own constant, which needs no care when it is shown.
#pragma once

#include "dif/program/program.h"

namespace ringside::dif {

/// stack(), %k of one, stackdepth or caller, in any clause.
bool uses_kernel_stack(const Program& program);

/// Whether it records addresses of processes' code: ustack(), usym() and the like.
bool records_user_code(const Program& program);

/// Whether each value that the object can return is a constant in it: "a", x ? "a" : "b", 27.
bool returns_constant(const Difo& difo);

}  // namespace ringside::dif
