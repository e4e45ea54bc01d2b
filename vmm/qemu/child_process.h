// A program that we start: found by name, given only the descriptors that it needs, watched through
// a pidfd (no SIGCHLD handler), and killed when we end unless it is to outlive us.
// Does not: talk to it, or read its standard error.
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"

namespace ringside::vmm {

/// The path of a program: `name` itself when it contains a slash, else the first match in $PATH.
std::optional<std::string> find_program(const std::string& name);

enum class ChildLife {
  EndsWithParent,  // SIGKILLed by the kernel when the thread that started it ends
  OutlivesParent,
};

class ChildProcess {
 public:
  /// Runs `path` with `arguments` (argument 0 included) in a session of its own, so that the
  /// terminal's SIGINT does not reach it. Its standard input and output are /dev/null, its standard
  /// error is a pipe to us. Of our other descriptors only `inherited` stay open in it, under their
  /// numbers. With EndsWithParent the parent is the *thread* that calls this: call it on the main
  /// thread. Io when it cannot be started.
  static Result<ChildProcess> spawn(const std::string& path,
                                    const std::vector<std::string>& arguments,
                                    std::span<const int> inherited, ChildLife life);
  ChildProcess(ChildProcess&&) noexcept = default;
  ChildProcess& operator=(ChildProcess&&) noexcept = default;

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }       // readable once the process has ended
  int stderr_fd() const { return stderr_.get(); }  // not blocking
  /// SIGKILL; harmless when it has ended.
  void kill();
  /// Waits for the end and reaps. Idempotent.
  void reap();
  /// "exit status 1", "signal 9 (Killed)"; empty before reap(), and when somebody else reaped it.
  const std::string& ended_how() const { return ended_how_; }

 private:
  ChildProcess(pid_t pid, UniqueFd pidfd, UniqueFd errors)
      : pid_(pid), pidfd_(std::move(pidfd)), stderr_(std::move(errors)) {}

  pid_t pid_;
  UniqueFd pidfd_, stderr_;
  std::string ended_how_;
};

}  // namespace ringside::vmm
