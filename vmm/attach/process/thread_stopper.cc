// In this file, top to bottom: one thread's stop, all of them, our own thread.
#include "vmm/attach/process/thread_stopper.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

namespace ringside::vmm {
namespace {

using Clock = std::chrono::steady_clock;
// A thread stops at once, unless it sleeps where no signal reaches it (storage that is gone).
constexpr std::chrono::seconds kStopTimeout{10};
constexpr std::chrono::milliseconds kBusyWait{2};
constexpr std::chrono::microseconds kStopNap{200};

long trace(__ptrace_request request, pid_t thread, long data = 0) {
  // SAFETY: glibc declares the last argument as a pointer; for these requests it is a number.
  return ptrace(request, thread, nullptr, reinterpret_cast<void*>(data));
}

tl::unexpected<Error> refused(pid_t thread, int why) {
  if (why == ESRCH) {
    return fail(ErrorCode::MachineGone, fmt::format("vCPU thread {} has ended", thread));
  }
  return fail(ErrorCode::Io, fmt::format("vCPU thread {} cannot be stopped: {}; is a debugger "
                                         "attached to it?",
                                         thread, std::strerror(why)));
}

/// Waits for the stop of a thread that was interrupted; the signal that it was to get, or 0.
Result<int> await_stop(pid_t thread, Clock::time_point deadline) {
  const Clock::time_point busy_until = Clock::now() + kBusyWait;
  for (;;) {
    int status = 0;
    const pid_t who = waitpid(thread, &status, __WALL | WNOHANG);
    if (who == thread && !WIFSTOPPED(status)) return refused(thread, ESRCH);
    if (who == thread) {
      // PTRACE_INTERRUPT's own stop, or that of a process which is stopped anyway.
      if (status >> 16 == PTRACE_EVENT_STOP) return 0;
      return WSTOPSIG(status);
    }
    if (who < 0 && errno != EINTR) return refused(thread, errno == ECHILD ? ESRCH : errno);
    const Clock::time_point now = Clock::now();
    if (now > deadline) return refused(thread, ETIMEDOUT);
    if (now < busy_until) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(kStopNap);
    }
  }
}

}  // namespace

Result<void> ThreadStopper::stop_here(std::span<const pid_t> threads) {
  std::optional<Error> failure;
  std::size_t seized = 0;
  for (; seized < threads.size() && !failure; ++seized) {
    if (trace(PTRACE_SEIZE, threads[seized]) != 0) {
      failure = refused(threads[seized], errno).value();
      break;
    }
  }
  for (std::size_t i = 0; i < seized; ++i) trace(PTRACE_INTERRUPT, threads[i]);
  const Clock::time_point deadline = Clock::now() + kStopTimeout;
  for (std::size_t i = 0; i < seized; ++i) {
    auto stopped = await_stop(threads[i], deadline);
    if (stopped) {
      stopped_.push_back({threads[i], *stopped});
    } else if (!failure) {
      failure = std::move(stopped).error();
    }
  }
  if (!failure) return {};
  (void)let_go_here();  // our thread ends anyway
  return tl::make_unexpected(std::move(*failure));
}

bool ThreadStopper::let_go_here() {
  bool all = true;
  for (const Stopped& each : stopped_) {
    all = trace(PTRACE_DETACH, each.thread, each.signal) == 0 && all;
  }
  stopped_.clear();
  return all;
}

Result<void> ThreadStopper::stop(std::span<const pid_t> threads) {
  if (!guardian_) {
    guardian_.emplace(
        TRY(Guardian::start(-1, Guardian::Peer::None, Guardian::When::Held, "", timeout_)));
  }
  guardian_->hold();
  Result<void> done;
  call([&] { done = stop_here(threads); });
  if (!done) {
    // A thread that did not stop is still seized: only the end of ours lets go of it.
    end_thread();
    guardian_->unhold();
  }
  return done;
}

void ThreadStopper::let_go() {
  if (!thread_.joinable()) return;
  bool all = true;
  call([&] { all = let_go_here(); });
  // One that was killed meanwhile stays a zombie of ours, and its process with it, until our own
  // thread ends.
  if (!all) end_thread();
  guardian_->unhold();
}

std::optional<user_regs_struct> ThreadStopper::registers(std::size_t thread) {
  std::optional<user_regs_struct> found;
  call([&] {
    user_regs_struct registers{};
    if (thread < stopped_.size() &&
        ptrace(PTRACE_GETREGS, stopped_[thread].thread, nullptr, &registers) == 0) {
      found = registers;
    }
  });
  return found;
}

void ThreadStopper::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return job_ || ending_; });
    if (!job_) return;
    job_();
    job_ = nullptr;
    changed_.notify_all();
  }
}

void ThreadStopper::call(std::function<void()> job) {
  std::unique_lock lock(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  job_ = std::move(job);
  changed_.notify_all();
  changed_.wait(lock, [this] { return !job_; });
}

void ThreadStopper::end_thread() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
  ending_ = false;
}

ThreadStopper::~ThreadStopper() {
  let_go();
  end_thread();
}

}  // namespace ringside::vmm
