// Starts a program that ringside itself needs on the host: a shell, the C preprocessor. The command
// of -c is started by host_process.h instead.
// Does not: wait for the program (vmm/base/await_child.h).
#pragma once

#include <sys/types.h>

#include <span>
#include <string>

namespace ringside::cli {

/// Starts `program` (a name without a slash is searched in $PATH) with `words`, of which the first
/// is its argument 0, and with these files as its stdin and stdout. Signals are as in a child of
/// the user's shell: the session blocks some and ignores SIGPIPE, but its children must not.
/// Returns 0 or an errno.
int spawn(pid_t& child, const std::string& program, std::span<const std::string> words, int input,
          int output);

}  // namespace ringside::cli
