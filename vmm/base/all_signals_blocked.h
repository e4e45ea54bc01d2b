// Blocks all signals while a thread is started: a new thread inherits the mask of the thread that
// starts it. Signals are then delivered to the main thread only.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <initializer_list>

namespace ringside {

/// While it lives, this thread's signals are blocked; then its mask is as it was.
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
