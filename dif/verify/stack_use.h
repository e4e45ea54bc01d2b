// Whether a program ever follows the guest's kernel stack: the tables for that (many megabytes) are
// not loaded for a program that does not. The same for processes' addresses.
#pragma once

#include "dif/program/program.h"

namespace ringside::dif {

/// stack(), %k of one, stackdepth or caller, in any clause.
bool uses_kernel_stack(const Program& program);

/// Whether it records addresses of processes' code: ustack(), usym() and the like.
bool records_user_code(const Program& program);

}  // namespace ringside::dif
