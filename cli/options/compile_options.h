// What the compiler is told of the command line.
// Fire context: no.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/options/options.h"
#include "dif/d/compile.h"

namespace ringside::cli {

/// `target` is $target, 0 for none; `name` is what the compiler's messages call the programs.
d::CompileOptions compile_options(const CommandLine& line, std::string name, std::int64_t target,
                                  std::vector<d::LibrarySource> libraries);

}  // namespace ringside::cli
