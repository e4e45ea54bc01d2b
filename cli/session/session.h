// One run of the command: attach, compile, enable, trace, print, and take everything down again.
// Does not: know the back ends or the providers.
#pragma once

#include "cli/options/options.h"

namespace ringside::cli {

/// Runs what the command line asks for; returns the exit status. Errors are printed on stderr.
/// Call it before any thread was started: it blocks the signals that end it.
int run_session(CommandLine line);

}  // namespace ringside::cli
