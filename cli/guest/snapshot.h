// snapshot(): writes a target's machine to a file, as an ELF core (vmm/saved), while the machine is
// paused. Used by the output for each record of that action.
#pragma once

#include <string>

#include "providers/tracer/target.h"

namespace ringside::cli {

/// Pauses the machine, unless a firing holds it already, and writes the file, which must not exist.
/// Shows progress on a terminal. Returns a line on what was written; the error, too, is one line,
/// and names the file.
Result<std::string> write_snapshot(const providers::Target& target, const std::string& path);

}  // namespace ringside::cli
