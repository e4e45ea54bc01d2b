#include "cli/guest/host_program.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "vmm/base/process.h"

namespace ringside::cli {
namespace {

class SpawnPlan {
 public:
  SpawnPlan(int input, int output) {
    posix_spawnattr_init(&attributes_);
    posix_spawn_file_actions_init(&actions_);
    sigset_t none, ignored;
    sigemptyset(&none);
    sigemptyset(&ignored);
    sigaddset(&ignored, SIGPIPE);
    sigaddset(&ignored, SIGXFSZ);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &ignored);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    pass(input, STDIN_FILENO);
    pass(output, STDOUT_FILENO);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  int run(pid_t& child, const char* program, char* const* arguments) const {
    return ::posix_spawnp(&child, program, &actions_, &attributes_, arguments, environ);
  }

 private:
  void pass(int fd, int as) {
    if (fd != as) posix_spawn_file_actions_adddup2(&actions_, fd, as);
  }

  posix_spawnattr_t attributes_;
  posix_spawn_file_actions_t actions_;
};

}  // namespace

int spawn_program(pid_t& child, const std::string& program, std::span<const std::string> words,
                  int input, int output) {
  const std::vector<char*> arguments = exec_arguments(words);
  return SpawnPlan(input, output).run(child, program.c_str(), arguments.data());
}

int write_whole(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

Result<UniqueFd> memory_file(std::string_view text) {
  UniqueFd file(memfd_create("ringside-text", MFD_CLOEXEC));
  if (!file || write_whole(file.get(), text) != 0 || ::lseek(file.get(), 0, SEEK_SET) != 0) {
    return fail(ErrorCode::Io, fmt::format("no memory for a file: {}", std::strerror(errno)));
  }
  return file;
}

Result<int> run_in_shell(const std::string& command, int output_fd) {
  const std::string words[] = {"sh", "-c", command};
  pid_t child = 0;
  if (const int failed = spawn_program(child, "/bin/sh", words, STDIN_FILENO, output_fd);
      failed != 0) {
    return fail(ErrorCode::Io, fmt::format("cannot run /bin/sh: {}", std::strerror(failed)));
  }
  const auto status = await_child(child);
  if (!status) {
    return fail(ErrorCode::Io, fmt::format("cannot wait for /bin/sh: {}", std::strerror(errno)));
  }
  return *status;
}

}  // namespace ringside::cli
