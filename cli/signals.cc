#include "cli/signals.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "cli/messages.h"

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

/// Of a signal that came, its number; 0 when there is none.
int take_from(int fd) {
  signalfd_siginfo info;
  return ::read(fd, &info, sizeof info) == static_cast<ssize_t>(sizeof info)
             ? static_cast<int>(info.ssi_signo)
             : 0;
}

/// Nothing may delay the end: no thread that writes to stderr, and no reader that reads no more.
void say_last(std::string_view words) {
  const std::string line = fmt::format("{}: {}\n", program_name(), words);
  pollfd out{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&out, 1, 0) == 1) (void)!::write(STDERR_FILENO, line.data(), line.size());
}

/// As the signal would have done, had nobody blocked it.
void end_by(int signal) {
  std::signal(signal, SIG_DFL);
  const sigset_t set = ending_signals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  std::raise(signal);
}

}  // namespace

Result<Signals> Signals::block() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is its writer's error
  const sigset_t set = ending_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  UniqueFd fd(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC)), stop(eventfd(0, EFD_CLOEXEC));
  if (!fd || !stop) return fail(ErrorCode::Io, fmt::format("signalfd: {}", std::strerror(errno)));
  return Signals(std::move(fd), std::move(stop));
}

Signals::~Signals() {
  if (second_.joinable()) eventfd_write(stop_.get(), 1);
}

bool Signals::take() {
  const bool came = take_from(fd_.get()) != 0;
  came_ |= came;
  return came;
}

void Signals::obey_the_second() {
  if (second_.joinable()) return;
  second_ = std::jthread(
      [signals = fd_.get(), stop = stop_.get(), came = came_, words = last_words_]() mutable {
        for (;;) {
          pollfd fds[] = {{signals, POLLIN, 0}, {stop, POLLIN, 0}};
          ::poll(fds, 2, -1);
          if (fds[1].revents != 0) return;
          const int signal = take_from(signals);
          if (signal == 0 || !std::exchange(came, true)) continue;
          if (!words.empty()) say_last(words);
          end_by(signal);
        }
      });
}

}  // namespace ringside::cli
