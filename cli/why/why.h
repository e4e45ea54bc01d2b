// The command `why`: a health report of a machine that runs, or of one that was saved, as text or
// JSON. Nothing enters the guest.
// Does not: read the guest's structures (vmm/linux/health).
#pragma once

#include <functional>
#include <string>

#include "cli/options/options.h"
#include "cli/output/structured_writer.h"
#include "vmm/base/result.h"
#include "vmm/linux/health/report.h"

namespace ringside::cli {

/// Prints the report that the command line asks for. Returns the exit status, which is 0 whatever
/// is wrong with the guest. Errors are printed on stderr.
int run_why(const CommandLine& line);

/// Which guest to examine: one that runs, as --attach takes it, or one that was saved to a file.
struct HealthQuestion {
  std::string target;
  std::string core_file;             // of --core; empty: the target
  std::string types_file;            // of --types, or empty
  std::function<void()> found = {};  // told once its kernel is known
};
struct Examined {
  std::string name;
  guest_linux::HealthReport health;
};
Result<Examined> examine_machine(const HealthQuestion& asked);

/// The report for an operator: the likely cause first, then the facts behind it.
std::string health_text(const std::string& machine, const guest_linux::HealthReport& report);
/// The report for programs, with more facts; docs/why.md describes the fields.
Tree health_tree(const std::string& machine, const guest_linux::HealthReport& report);

}  // namespace ringside::cli
