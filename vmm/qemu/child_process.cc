// fork and exec. Between the two only async-signal-safe calls are made: other threads of ours may
// have held any lock at the fork.
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

#include "vmm/base/await_child.h"
#include "vmm/base/pidfd.h"

namespace ringside::vmm {
namespace {

struct Pipe {
  UniqueFd read, write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return fail(ErrorCode::Io, fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// A pipe or socket of ours with number 0, 1 or 2 would be lost when the child sets up its own
/// standard descriptors.
void ensure_standard_descriptors() {
  int fd;
  do {
    fd = open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) close(fd);
}

struct ChildPlan {
  const char* path;
  char* const* arguments;
  std::span<const int> inherited;
  ChildLife life;
  pid_t parent;
  int error_pipe;   // becomes standard error
  int status_pipe;  // closed by a successful exec, else carries errno
};

/// In the child. Ends in the new program or tells the parent why not.
[[noreturn]] void become(const ChildPlan& plan) {
  if (plan.life == ChildLife::EndsWithParent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != plan.parent) _exit(127);  // the parent ended before the line above
  }
  setsid();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = open("/dev/null", O_RDWR);
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
  dup2(plan.error_pipe, STDERR_FILENO);
  close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  for (const int fd : plan.inherited) fcntl(fd, F_SETFD, 0);
  execv(plan.path, plan.arguments);
  const int reason = errno;
  (void)!write(plan.status_pipe, &reason, sizeof reason);
  _exit(127);
}

/// Waits until the child has become the program; its errno when it could not.
int await_exec(const UniqueFd& status) {
  int reason = 0;
  ssize_t got;
  do {
    got = read(status.get(), &reason, sizeof reason);
  } while (got < 0 && errno == EINTR);
  return got == sizeof reason ? reason : 0;
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
  Pipe errors = TRY(make_pipe());
  Pipe status = TRY(make_pipe());
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const ChildPlan plan{path.c_str(), argv.data(),        inherited,         life,
                       getpid(),     errors.write.get(), status.write.get()};
  const pid_t pid = fork();
  if (pid < 0) {
    return fail(ErrorCode::Io, fmt::format("cannot start {}: {}", path, std::strerror(errno)));
  }
  if (pid == 0) become(plan);
  errors.write.reset();
  status.write.reset();
  fcntl(errors.read.get(), F_SETFL, O_NONBLOCK);
  ChildProcess child(pid, open_pidfd(pid), std::move(errors.read));
  const int reason = await_exec(status.read);
  if (reason != 0 || !child.pidfd_) {
    ::kill(pid, SIGKILL);
    await_child(pid);
    return fail(ErrorCode::Io, fmt::format("cannot start {}: {}", path,
                                           std::strerror(reason != 0 ? reason : ENOSYS)));
  }
  return child;
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
