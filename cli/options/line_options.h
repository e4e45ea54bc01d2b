// The letters and long options out of options.def, for the parser of the command line (options.cc).
#pragma once

#include <span>
#include <string>

#include "cli/options/options.h"
#include "vmm/base/result.h"

namespace ringside::cli {

struct LineOption {
  char letter;       // 0: none
  const char* word;  // without its dashes; "": none
  bool takes_argument;
  /// `argument` is empty where it takes none. Usage: no such value.
  Result<void> (*set)(CommandLine& line, const std::string& argument);
};

std::span<const LineOption> line_options();

}  // namespace ringside::cli
