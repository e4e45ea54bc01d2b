// system(): runs a command of the D program in the host's shell and waits for it.
// Signals that end tracing reach the command as well: ringside's own threads block them, the
// command does not.
// Does not: read the command's output.
#pragma once

#include <string>

#include "vmm/base/result.h"

namespace ringside::cli {

/// `sh -c command`, its stdout going to `output_fd`. The value is its wait status; the error says
/// why it could not be started.
Result<int> run_in_shell(const std::string& command, int output_fd);

}  // namespace ringside::cli
