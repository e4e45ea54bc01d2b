// waitpid() that signals do not interrupt. Used wherever a child process is waited for by its pid.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>

#include <cerrno>
#include <optional>

namespace ringside {

/// Waits until a child ends, or stops where it is traced, however many signals come meanwhile. The
/// value is its wait status; without one errno says why (ECHILD: there is no such child any more).
inline std::optional<int> await_child(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return std::nullopt;
  }
  return status;
}

}  // namespace ringside
