// The command lines of `ps`, `dmesg`, `modules`, `mounts`, `lsof`, `netstat` and `top`. Their
// letters are those of the programs that they are named after, hence not those of a trace. Used by
// the parser of the command line.
#pragma once

#include <string>
#include <vector>

#include "cli/options/options.h"
#include "vmm/base/result.h"

namespace ringside::cli {

/// All of `words`, the program's name and the command's included. Targets become line.arguments.
Result<void> parse_look(CommandLine& line, LookOptions::List list,
                        const std::vector<std::string>& words);

/// "ps", "dmesg"...
std::string_view name_of(LookOptions::List list);

}  // namespace ringside::cli
