// A program that the command runs on the host for itself: a shell, the C preprocessor.
// Does not: wait for it (vmm/base/await_child.h). -c's command is another matter: host_process.h.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>

namespace ringside::cli {

/// Starts `program` ($PATH is looked through for a name without a slash) with `words`, the first of
/// which it sees as its own name, and these files as its stdin and stdout. Signals are as in a
/// child of the user's shell: the session blocks some and ignores SIGPIPE, its children must not.
/// 0, or why not: an errno.
int spawn(pid_t& child, const std::string& program, std::span<const std::string> words, int input,
          int output);

}  // namespace ringside::cli
