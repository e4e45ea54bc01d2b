// The compiler's options, made from the command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/options/options.h"
#include "dif/d/compile.h"

namespace ringside::cli {

/// `targets` is $target on each machine, 0 for none; `name` is what the compiler's messages call
/// the programs. Options that a program sets (`#pragma D option`) are set in `line`, which must
/// stay until the program is compiled.
d::CompileOptions compile_options(CommandLine& line, std::string name,
                                  const std::vector<std::int64_t>& targets,
                                  std::vector<d::LibrarySource> libraries);

}  // namespace ringside::cli
