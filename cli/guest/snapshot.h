// snapshot(): a target's machine in a file, as an ELF core (vmm/saved), while it stands still.
// Used by the output, for a record of that action.
#pragma once

#include <string>

#include "providers/tracer/target.h"

namespace ringside::cli {

/// Pauses the machine, unless a firing keeps it still already, and writes the file, which may not
/// exist yet; says how far it is on a terminal. Returns a line on what was written; the error,
/// too, is one line, and names the file.
Result<std::string> write_snapshot(const providers::Target& target, const std::string& path);

}  // namespace ringside::cli
