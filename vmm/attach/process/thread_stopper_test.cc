#include "vmm/attach/process/thread_stopper.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "vmm/attach/host/host_process.h"

namespace ringside::vmm {
namespace {

using namespace std::chrono_literals;

/// The memory that the process under test and we share.
struct Shared {
  std::array<std::atomic<pid_t>, 2> threads{};
  std::array<std::atomic<std::uint64_t>, 2> counts{};
  std::atomic<int> signals{0};
};

Shared* shared_now = nullptr;

[[noreturn]] void count(std::size_t which) {
  shared_now->threads[which] = static_cast<pid_t>(syscall(SYS_gettid));
  for (;;) ++shared_now->counts[which];
}

/// A process with two threads that count.
class Counting : public testing::Test {
 protected:
  void SetUp() override {
    void* memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    shared_ = shared_now = new (memory) Shared;
    child_ = fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) be_the_process();
    for (std::size_t i = 0; i < 2; ++i) {
      while (shared_->threads[i] == 0 || shared_->counts[i] == 0) sched_yield();
      threads_.push_back(shared_->threads[i]);
    }
  }
  void TearDown() override {
    stopper_.let_go();
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
    munmap(shared_, sizeof(Shared));
  }

  /// Whether both go on counting, however loaded the machine is.
  bool both_run() const {
    for (std::size_t i = 0; i < 2; ++i) {
      const std::uint64_t before = shared_->counts[i];
      const auto deadline = std::chrono::steady_clock::now() + 60s;
      while (shared_->counts[i] == before) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        std::this_thread::sleep_for(1ms);
      }
    }
    return true;
  }
  /// Whether neither moves while we look.
  bool both_stand() const {
    const std::uint64_t first = shared_->counts[0], second = shared_->counts[1];
    std::this_thread::sleep_for(20ms);
    return shared_->counts[0] == first && shared_->counts[1] == second;
  }

  Shared* shared_ = nullptr;
  pid_t child_ = -1;
  std::vector<pid_t> threads_;
  ThreadStopper stopper_;

 private:
  [[noreturn]] static void be_the_process() {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGUSR1, [](int) { ++shared_now->signals; });
    std::thread([] { count(0); }).detach();
    count(1);
  }
};

TEST_F(Counting, AllStandStillBetweenStopAndLetGo) {
  for (int i = 0; i < 3; ++i) {
    const auto stopped = stopper_.stop(threads_);

    ASSERT_TRUE(stopped.has_value()) << stopped.error().message;
    EXPECT_TRUE(both_stand());
    EXPECT_TRUE(stopper_.registers(0).has_value());
    EXPECT_NE(stopper_.registers(1)->rip, 0u);
    EXPECT_FALSE(stopper_.registers(2).has_value());

    stopper_.let_go();
    EXPECT_TRUE(both_run());
  }
}

TEST_F(Counting, ASignalThatArrivesMeanwhileIsNotLost) {
  for (int i = 0; i < 20; ++i) {
    const int before = shared_->signals;
    ASSERT_TRUE(stopper_.stop(threads_).has_value());
    kill(child_, SIGUSR1);
    stopper_.let_go();

    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (shared_->signals == before && std::chrono::steady_clock::now() < deadline) sched_yield();
    EXPECT_EQ(shared_->signals, before + 1);
  }
  EXPECT_TRUE(both_run());
}

TEST_F(Counting, ASignalOnItsWayIsNotLost) {
  const int before = shared_->signals;
  for (int i = 0; i < 20; ++i) {
    kill(child_, SIGUSR1);
    ASSERT_TRUE(stopper_.stop(threads_).has_value());
    stopper_.let_go();
  }

  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (shared_->signals == before && std::chrono::steady_clock::now() < deadline) sched_yield();
  EXPECT_GT(shared_->signals, before) << "equal ones that wait may become one";
  EXPECT_TRUE(both_run());
}

TEST_F(Counting, AProcessThatWasStoppedStaysSo) {
  kill(child_, SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(child_, &status, WUNTRACED), child_);
  ASSERT_TRUE(WIFSTOPPED(status));

  ASSERT_TRUE(stopper_.stop(threads_).has_value());
  stopper_.let_go();

  EXPECT_TRUE(both_stand());
  kill(child_, SIGCONT);
  EXPECT_TRUE(both_run());
}

TEST_F(Counting, TheyGoOnWhenWhoeverStoppedThemDies) {
  const pid_t other = fork();
  ASSERT_GE(other, 0);
  if (other == 0) {
    ThreadStopper stopper;
    if (!stopper.stop(threads_)) _exit(1);
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(other, &status, 0), other);

  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(both_run());
  EXPECT_TRUE(stopper_.stop(threads_).has_value());
}

/// Another process that stops the threads, lets them go if so, and is stopped then; exits with 0
/// once it may go on.
pid_t start_stopped_stopper(const std::vector<pid_t>& threads, bool lets_go) {
  const pid_t other = fork();
  if (other == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ThreadStopper stopper(200ms);
    if (!stopper.stop(threads)) _exit(1);
    if (lets_go) stopper.let_go();
    raise(SIGSTOP);
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(other, &status, WUNTRACED), other);
  EXPECT_TRUE(WIFSTOPPED(status));
  return other;
}

TEST_F(Counting, WhoIsStoppedWhileTheyStandIsEndedSoThatTheyGoOn) {
  const pid_t other = start_stopped_stopper(threads_, false);

  EXPECT_TRUE(both_run());
  kill(other, SIGCONT);  // if nobody has ended it, it exits
  int status = 0;
  ASSERT_EQ(waitpid(other, &status, 0), other);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST_F(Counting, WhoIsStoppedWhileTheyRunIsLeftAlone) {
  const pid_t other = start_stopped_stopper(threads_, true);

  std::this_thread::sleep_for(1s);
  EXPECT_EQ(waitpid(other, nullptr, WNOHANG), 0);
  kill(other, SIGCONT);
  int status = 0;
  ASSERT_EQ(waitpid(other, &status, 0), other);
  EXPECT_TRUE(WIFEXITED(status));
}

TEST_F(Counting, TheyGoOnWhenTheStopperIsDestroyed) {
  {
    ThreadStopper stopper;
    ASSERT_TRUE(stopper.stop(threads_).has_value());
  }

  EXPECT_TRUE(both_run());
}

TEST_F(Counting, OneThatIsTracedAlreadyIsRefusedAndTheOthersGoOn) {
  ThreadStopper first;
  ASSERT_TRUE(first.stop(std::span(threads_).subspan(1)).has_value());

  const auto second = stopper_.stop(threads_);

  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::Io);
  EXPECT_NE(second.error().message.find("is a debugger attached"), std::string::npos);
  first.let_go();
  EXPECT_TRUE(both_run());
  EXPECT_TRUE(stopper_.stop(threads_).has_value());
}

TEST_F(Counting, OneThatHasEndedIsToldAsGone) {
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
  child_ = -1;

  const auto stopped = stopper_.stop(threads_);

  ASSERT_FALSE(stopped.has_value());
  EXPECT_EQ(stopped.error().code, ErrorCode::MachineGone);
}

TEST_F(Counting, WhoDiesWhileStoppedIsLetGo) {
  ASSERT_TRUE(stopper_.stop(threads_).has_value());
  kill(child_, SIGKILL);

  stopper_.let_go();

  EXPECT_EQ(waitpid(child_, nullptr, 0), child_) << "its parent is told of its end";
  child_ = -1;
  EXPECT_FALSE(stopper_.stop(threads_).has_value());
}

}  // namespace
}  // namespace ringside::vmm
