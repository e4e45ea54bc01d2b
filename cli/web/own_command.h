// Commands of ringside itself as processes beside `ringside web`: a page's programs and the lists
// of machines. A process of its own cannot take the server with it, and is ended as a user would
// end it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"

namespace ringside::cli {

struct OwnCommand {
  pid_t pid = -1;
  UniqueFd process;         // its pidfd
  UniqueFd output, errors;  // the reading ends of its stdout and stderr
};

/// Starts /proc/self/exe with these words, argument 0 not among them. `input` becomes its stdin; -1
/// is /dev/null. Io: it cannot be started.
Result<OwnCommand> start_own_command(std::vector<std::string> words, int input = -1);

struct CommandResult {
  int status = 0;  // its exit status; 128 and the signal's number where one ended it
  std::string output, errors;
};

/// Runs it to its end. Limit: it printed more than `most` bytes, or took longer; it is then ended.
Result<CommandResult> run_own_command(std::vector<std::string> words, int input, std::size_t most,
                                      std::chrono::seconds time);

/// An exit status as a shell has it.
int shell_status(int wait_status);

}  // namespace ringside::cli
