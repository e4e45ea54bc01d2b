#include "cli/signals.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace ringside::cli {
namespace {

sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  return set;
}

}  // namespace

Result<Signals> Signals::block() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is its writer's error
  const sigset_t set = ending_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  UniqueFd fd(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd) return fail(ErrorCode::Io, fmt::format("signalfd: {}", std::strerror(errno)));
  return Signals(std::move(fd));
}

bool Signals::take() {
  signalfd_siginfo info;
  return ::read(fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info);
}

void Signals::restore_defaults() {
  const sigset_t set = ending_signals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace ringside::cli
