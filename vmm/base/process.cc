#include "vmm/base/process.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace ringside {
namespace {

/// In the child. Ends in the new program or tells the parent why not.
[[noreturn]] void become_program(const char* path, char* const* words,
                                 const std::function<int()>& prepare, int report) {
  int problem = prepare();
  if (problem == 0) {
    execvp(path, words);
    problem = errno;
  }
  (void)!write(report, &problem, sizeof problem);
  _exit(127);
}

/// The errno with which the child gave up; 0 when exec has closed its end of the pipe.
int await_exec(int report) {
  int problem = 0;
  ssize_t got;
  do {
    got = read(report, &problem, sizeof problem);
  } while (got < 0 && errno == EINTR);
  return got == sizeof problem ? problem : 0;
}

}  // namespace

std::vector<char*> exec_arguments(std::span<const std::string> words) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  // SAFETY: exec does not write to the words; its type is older than const.
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  return arguments;
}

std::optional<PipeEnds> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  return PipeEnds{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

StartedProgram start_program(const std::string& path, std::span<const std::string> words,
                             const std::function<int()>& prepare) {
  const std::vector<char*> arguments = exec_arguments(words);
  auto pipe = make_pipe();
  if (!pipe) return {-1, errno};
  const pid_t child = fork();
  if (child < 0) return {-1, errno};
  if (child == 0) become_program(path.c_str(), arguments.data(), prepare, pipe->writer.get());
  pipe->writer.reset();
  const int problem = await_exec(pipe->reader.get());
  if (problem == 0) return {child, 0};
  await_child(child);
  return {-1, problem};
}

std::optional<int> await_child(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return std::nullopt;
  }
  return status;
}

UniqueFd open_pidfd(pid_t pid) {
  return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

void signal_pidfd(int pidfd, int signal) {
  (void)syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0);
}

}  // namespace ringside
