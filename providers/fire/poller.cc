#include "providers/fire/poller.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <utility>

#include "vmm/base/host_cpu.h"
#include "vmm/base/process.h"

namespace ringside::providers {
namespace {

constexpr int kNiceness = -10;  // nice

}  // namespace

std::thread start_firing_thread(const char* name, std::function<void()> body) {
  const AllSignalsBlocked blocked;
  return std::thread([name, body = std::move(body)] {
    pthread_setname_np(pthread_self(), name);
    prctl(PR_SET_TIMERSLACK, 1UL);  // the default rounds short sleeps up by 50 us
    // A vCPU that waits for us burns its time slice in the shim, so we go first where both want the
    // same host CPU. Not being allowed to costs speed only.
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNiceness);
    body();
  });
}

void sleep_ns(std::uint64_t duration) {
  const timespec rest{static_cast<time_t>(duration / 1'000'000'000),
                      static_cast<long>(duration % 1'000'000'000)};
  ::clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, nullptr);
}

Poller::Poller(const ShimTraps& traps, vmm::PollShare share) : traps_(traps), share_(share) {
  thread_ = start_firing_thread("ringside-poll", [this] { body(); });
}

Poller::~Poller() {
  stop_.store(true, std::memory_order_release);
  thread_.join();
}

void Poller::body() {
  IdleWait wait;
  while (!stop_.load(std::memory_order_acquire)) {
    if (traps_.shim.poll_share(traps_.handlers, share_) != 0) {
      wait.busy();
    } else if (const std::uint64_t pause = wait.idle(UINT64_MAX); pause != 0) {
      sleep_ns(pause);
    } else {
      cpu_relax();
    }
  }
}

}  // namespace ringside::providers
