#include "vmm/qemu/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "vmm/base/process.h"

namespace ringside::vmm {
namespace {

/// A pipe or socket of ours with number 0, 1 or 2 would be lost when the child sets up its own
/// standard descriptors.
void ensure_standard_descriptors() {
  int fd;
  do {
    fd = open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) close(fd);
}

/// In the child: a session of its own, its standard descriptors, and of ours only `inherited`.
int prepare_child(pid_t parent, ChildLife life, int errors, std::span<const int> inherited) {
  if (life == ChildLife::EndsWithParent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) return ESRCH;  // the parent ended before the line above
  }
  setsid();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = open("/dev/null", O_RDWR);
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  for (const int fd : inherited) fcntl(fd, F_SETFD, 0);
  return 0;
}

}  // namespace

std::optional<std::string> find_program(const std::string& name) {
  const auto runs = [](const std::string& path) {
    struct stat info;
    return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
           access(path.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos) return runs(name) ? std::optional(name) : std::nullopt;
  const char* path = std::getenv("PATH");
  std::string_view left = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  while (!left.empty()) {
    const std::size_t end = std::min(left.find(':'), left.size());
    const std::string candidate = fmt::format("{}/{}", left.substr(0, end), name);
    if (end > 0 && runs(candidate)) return candidate;
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return std::nullopt;
}

Result<ChildProcess> ChildProcess::spawn(const std::string& path,
                                         const std::vector<std::string>& arguments,
                                         std::span<const int> inherited, ChildLife life) {
  ensure_standard_descriptors();
  auto errors = make_pipe();
  if (!errors) {
    return fail(ErrorCode::Io, fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  const auto prepare = [&, parent = getpid()] {
    return prepare_child(parent, life, errors->writer.get(), inherited);
  };
  const StartedProgram started = start_program(path, arguments, prepare);
  const auto failed = [&path](int problem) {
    return fail(ErrorCode::Io, fmt::format("cannot start {}: {}", path, std::strerror(problem)));
  };
  if (started.problem != 0) return failed(started.problem);
  errors->writer.reset();
  fcntl(errors->reader.get(), F_SETFL, O_NONBLOCK);
  ChildProcess child(started.child, open_pidfd(started.child), std::move(errors->reader));
  if (child.pidfd_) return child;
  ::kill(started.child, SIGKILL);
  await_child(started.child);
  return failed(ENOSYS);
}

void ChildProcess::kill() {
  signal_pidfd(pidfd_.get(), SIGKILL);
}

void ChildProcess::reap() {
  siginfo_t info{};
  int failed;
  do {
    failed = waitid(P_PIDFD, static_cast<id_t>(pidfd_.get()), &info, WEXITED);
  } while (failed != 0 && errno == EINTR);
  if (failed != 0) return;  // ECHILD: reaped before, or by a process that ignores SIGCHLD
  ended_how_ = info.si_code == CLD_EXITED
                   ? fmt::format("exit status {}", info.si_status)
                   : fmt::format("signal {} ({})", info.si_status, strsignal(info.si_status));
}

}  // namespace ringside::vmm
