// `ringside web`: a page for a browser that shows the host's machines and runs D programs on them.
// The server answers with what ringside's own commands print, and does no tracing itself.
#pragma once

#include "cli/options/options.h"

namespace ringside::cli {

/// Serves until it is told to end; the command's exit status.
int run_web(const CommandLine& line);

}  // namespace ringside::cli
