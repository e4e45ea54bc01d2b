// Programs that ringside itself needs on the host: the shell of system(), the C preprocessor. The
// command of -c is started by host_process.h instead.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <string_view>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"

namespace ringside::cli {

/// Starts `program` (a name without a slash is searched in $PATH) with `words`, of which the first
/// is its argument 0, and with these files as its stdin and stdout. Signals are as in a child of
/// the user's shell: the session blocks some and ignores SIGPIPE, but its children must not.
/// Returns 0 or an errno. Does not wait for the program: await_child() does.
int spawn_program(pid_t& child, const std::string& program, std::span<const std::string> words,
                  int input, int output);

/// The errno; 0 when all was written.
int write_whole(int file, std::string_view text);
/// A file without a name that holds the text, read from its beginning. In memory, so that a program
/// that reads it never waits.
Result<UniqueFd> memory_file(std::string_view text);

/// system(): `sh -c command`, its stdout going to `output_fd`, and waits for it. Signals that end
/// tracing reach the command as well. The value is its wait status; the error says why it could not
/// be started.
Result<int> run_in_shell(const std::string& command, int output_fd);

}  // namespace ringside::cli
