#include "cli/shell.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace ringside::cli {
namespace {

/// Attributes and file actions of a child that starts like one of the user's own shell.
class SpawnPlan {
 public:
  explicit SpawnPlan(int output_fd) {
    posix_spawnattr_init(&attributes_);
    posix_spawn_file_actions_init(&actions_);
    sigset_t none, broken_pipe;
    sigemptyset(&none);
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &broken_pipe);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (output_fd != STDOUT_FILENO) {
      posix_spawn_file_actions_adddup2(&actions_, output_fd, STDOUT_FILENO);
    }
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  /// 0, or why not.
  int run(pid_t& child, const char* const* arguments) const {
    // SAFETY: posix_spawn() does not write to the arguments; its type is older than const.
    return ::posix_spawn(&child, arguments[0], &actions_, &attributes_,
                         const_cast<char* const*>(arguments + 1), environ);
  }

 private:
  posix_spawnattr_t attributes_;
  posix_spawn_file_actions_t actions_;
};

}  // namespace

Result<int> run_in_shell(const std::string& command, int output_fd) {
  const char* const arguments[] = {"/bin/sh", "sh", "-c", command.c_str(), nullptr};
  pid_t child = 0;
  const int failed = SpawnPlan(output_fd).run(child, arguments);
  if (failed != 0) {
    return fail(ErrorCode::Io, fmt::format("cannot run /bin/sh: {}", std::strerror(failed)));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) {
      return fail(ErrorCode::Io, fmt::format("cannot wait for /bin/sh: {}", std::strerror(errno)));
    }
  }
  return status;
}

}  // namespace ringside::cli
