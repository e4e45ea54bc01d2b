#include "cli/signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <initializer_list>

namespace ringside::cli {
namespace {

/// Returns once somebody has taken it.
void send(int signal) {
  kill(getpid(), signal);
  sigset_t pending;
  do {
    usleep(100);
    sigpending(&pending);
  } while (sigismember(&pending, signal) == 1);
}

/// As a process of its own: signals are sent while tracing ends, `taken` of them before that.
[[noreturn]] void end_tracing(bool taken, std::initializer_list<int> sent) {
  {
    auto signals = Signals::block();
    if (taken) {
      kill(getpid(), SIGINT);
      if (!signals->take()) _exit(1);
    }
    signals->set_last_words("some stayed");
    signals->obey_the_second();
    for (const int signal : sent) send(signal);
  }
  _exit(0);
}

TEST(SignalsTest, TheFirstOneWhileTracingEndsByItselfChangesNothing) {
  EXPECT_EXIT(end_tracing(false, {}), testing::ExitedWithCode(0), "^$");
  EXPECT_EXIT(end_tracing(false, {SIGINT}), testing::ExitedWithCode(0), "^$");
}

TEST(SignalsTest, TheSecondOneEndsTheProcessAtOnce) {
  EXPECT_EXIT(end_tracing(false, {SIGINT, SIGTERM}), testing::KilledBySignal(SIGTERM),
              ": some stayed\n$");
  EXPECT_EXIT(end_tracing(true, {SIGINT}), testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace ringside::cli
