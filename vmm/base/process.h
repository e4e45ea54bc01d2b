// The host's processes and threads: starts a program, waits for it, signals it without a race, and
// keeps signals from a new thread.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vmm/base/unique_fd.h"

namespace ringside {

/// The words as exec() and posix_spawn() take them, with a null pointer behind. They stay the
/// caller's.
std::vector<char*> exec_arguments(std::span<const std::string> words);

/// Both ends are close-on-exec. Empty with errno on failure.
struct PipeEnds {
  UniqueFd reader, writer;
};
std::optional<PipeEnds> make_pipe();

/// A child that has become its program, or the errno of the call that failed.
struct StartedProgram {
  pid_t child = -1;  // -1: none was made, or it was reaped
  int problem = 0;   // 0: it runs
};

/// Forks a child, which calls `prepare` and then becomes `path` with `words` (argument 0 included).
/// Returns when the program has begun. `path` is searched in $PATH if it has no slash. `prepare`
/// may make async-signal-safe calls only: other threads may have held any lock at the fork. It
/// returns 0, or the errno with which to give up. Descriptors that are close-on-exec have to stay
/// open in it: one of them reports a failure.
StartedProgram start_program(const std::string& path, std::span<const std::string> words,
                             const std::function<int()>& prepare);

/// Waits until a child ends, or stops where it is traced, however many signals come meanwhile. The
/// value is its wait status; without one errno says why (ECHILD: there is no such child any more).
std::optional<int> await_child(pid_t child);

// The pidfd system calls (Linux 5.3). glibc 2.36 declares them without extern "C", so that C++
// programs do not link.

/// Readable once `pid` has ended; always close-on-exec. Empty with errno on failure.
UniqueFd open_pidfd(pid_t pid);
/// Cannot hit another process that got the same number. Harmless when the process has ended.
void signal_pidfd(int pidfd, int signal);

/// While one lives, this thread's signals are blocked; then its mask is as it was. A thread that is
/// started meanwhile inherits the mask, so signals go to the main thread only.
class AllSignalsBlocked {
 public:
  /// All but the numbers in `except`; a zero among them is none.
  AllSignalsBlocked(std::initializer_list<int> except = {}) {
    sigset_t all;
    sigfillset(&all);
    for (const int signal : except) {
      if (signal != 0) sigdelset(&all, signal);
    }
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace ringside
