// Stops threads of another process by ptrace(2): seizes them, interrupts them, and detaches again
// after each stop. A tracer that stays attached would have to pass on every signal. If we die, the
// process runs on: by ptrace's rule all its stopped threads belong to one thread of ours, which
// exists for that and dies with us. If we are stopped ourselves meanwhile, a guardian ends us
// (vmm/qemu/guardian.h). Used by ProcessVcpus and by the search for vCPU threads. Does not: know
// what the threads do.
// Threads: one caller at a time.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "vmm/base/result.h"
#include "vmm/qemu/guardian.h"

namespace ringside::vmm {

class ThreadStopper {
 public:
  /// `timeout`: for how long we may be stopped while they stand.
  explicit ThreadStopper(std::chrono::milliseconds timeout = std::chrono::seconds(3))
      : timeout_(timeout) {}
  ~ThreadStopper();
  ThreadStopper(const ThreadStopper&) = delete;
  ThreadStopper& operator=(const ThreadStopper&) = delete;

  /// Returns once all stand still; on failure none does on our account. MachineGone when one has
  /// ended, Io with the reason when one may not be stopped or does not stop.
  Result<void> stop(std::span<const pid_t> threads);
  /// All go on, as they were: what was stopped by a signal stays so. Idempotent.
  void let_go();
  /// The registers of a thread that is stopped, by its place in stop()'s list; empty once it is
  /// gone.
  std::optional<user_regs_struct> registers(std::size_t thread);

 private:
  struct Stopped {
    pid_t thread = 0;
    int signal = 0;  // that was on its way to it, and is handed back
  };
  void run();
  void call(std::function<void()> job);
  void end_thread();
  Result<void> stop_here(std::span<const pid_t> threads);
  bool let_go_here();

  const std::chrono::milliseconds timeout_;
  std::optional<Guardian> guardian_;  // from the first stop on
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> job_;  // what the thread is to do; empty: nothing
  bool ending_ = false;
  std::thread thread_;
  std::vector<Stopped> stopped_;  // the thread's, while a job runs
};

}  // namespace ringside::vmm
