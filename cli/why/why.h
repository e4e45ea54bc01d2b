// The command `why`: a health report of a machine that runs, or of one that was saved, as text or
// JSON. Nothing enters the guest.
// Does not: read the guest's structures (vmm/linux/health).
#pragma once

#include "cli/options/options.h"
#include "cli/output/structured_writer.h"
#include "vmm/linux/health/report.h"

namespace ringside::cli {

/// The report that the command line asks for; returns the exit status, which is 0 whatever ails the
/// guest. Errors are told on stderr.
int run_why(const CommandLine& line);

/// As an operator reads it: the likely cause first, then what it was concluded from.
std::string health_text(const std::string& machine, const guest_linux::HealthReport& report);
/// The same and more for programs; docs/why.md describes the fields.
Tree health_tree(const std::string& machine, const guest_linux::HealthReport& report);

}  // namespace ringside::cli
