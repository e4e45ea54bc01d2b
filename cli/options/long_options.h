// The options of two dashes, in one table: what reads the command line, and the tests of --help,
// the manual and the completions, walk it.
#pragma once

#include <span>
#include <string>

#include "cli/options/options.h"
#include "vmm/base/result.h"

namespace ringside::cli {

struct LongOption {
  const char* name;
  bool takes_argument;
  /// `argument` is empty where it takes none. Usage: no such value.
  Result<void> (*set)(CommandLine& line, const std::string& argument);
};

std::span<const LongOption> long_options();

}  // namespace ringside::cli
