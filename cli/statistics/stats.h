// The command `stats`: the figures of the traces that this user runs on this host now, as text or
// JSON. It does not look at the guests.
#pragma once

#include <span>
#include <string>

#include "cli/options/options.h"
#include "cli/statistics/figures_file.h"

namespace ringside::cli {

/// Prints the figures that the command line asks for; returns the exit status: a machine that was
/// named and is not traced is a failure.
int run_stats(const CommandLine& line);

std::string stats_text(std::span<const ProcessFigures> processes);
/// An array with an object for each machine.
std::string stats_json(std::span<const ProcessFigures> processes, int indent);

}  // namespace ringside::cli
