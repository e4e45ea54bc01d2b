// The machines of a command line. --image, --kernel and --attach have settings of one machine, the
// other options those of all machines. Refuses options that cannot be combined. Used by the parser
// of the command line.
// Does not: look for images or files.
#pragma once

#include <string_view>

#include "cli/options/options.h"
#include "vmm/base/result.h"

namespace ringside::cli {

Result<void> set_cpus(vmm::GuestConfig& config, std::string_view text);
Result<void> set_memory(vmm::GuestConfig& config, std::string_view text);

/// Makes each of line.machines whole once all options were read: so far its image, kernel or target
/// is the option's argument, FILE[,name=NAME][,cpus=N][,memory=SIZE][,initrd=FILE][,append=STRING],
/// where two commas stand for one. Settings that it leaves out are line.common's. For --attach the
/// argument is TARGET[,name=NAME].
Result<void> complete_machines(CommandLine& line);

/// Rules between options about machines.
Result<void> check_machines(const CommandLine& line);

}  // namespace ringside::cli
