// `ringside plockstat`: the locks of a process of the guest, as plockstat(1M) prints them. It is a
// D program on the provider plockstat, which is traced as any other.
#pragma once

#include <string>

#include "cli/options/options.h"

namespace ringside::cli {

/// The program, with $target for the process.
std::string plockstat_program(const PlockstatOptions& options);

/// Traces with it; the exit status.
int run_plockstat(CommandLine line);

}  // namespace ringside::cli
