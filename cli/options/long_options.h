// The options of two dashes, in one table. The parser of the command line walks it, and so do the
// tests of --help, of the manual and of the completions.
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
