// Records when a machine's guest may have stood still: in our pauses, and while its owner had
// stopped it. The guest's TSC may have stopped meanwhile (QEMU's TCG) or gone on (KVM), so the
// guest clock needs these times. They are in ticks of the host's TSC. Threads: every function from
// any. Fire context: version() and ticks() yes.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace ringside::vmm {

class StopTimes {
 public:
  /// It stands, or is about to. Stops nest: our pauses, and those of its owner.
  void begin(std::uint64_t tsc) {
    const std::lock_guard lock(mutex_);
    if (depth_++ != 0) return;
    since_.store(tsc, std::memory_order_release);
    version_.fetch_add(1, std::memory_order_release);
  }
  /// The guest runs again, since `tsc` or earlier. Call it as often as begin().
  void end(std::uint64_t tsc) {
    const std::lock_guard lock(mutex_);
    if (depth_ == 0 || --depth_ != 0) return;
    const std::uint64_t since = since_.load(std::memory_order_relaxed);
    // Whoever reads both in between counts this stop twice, which is not too little.
    if (tsc > since) ended_.fetch_add(tsc - since, std::memory_order_release);
    since_.store(0, std::memory_order_release);
    version_.fetch_add(1, std::memory_order_release);
  }

  /// Odd while it stands; another one after each change.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }
  /// For how long it has stood still until `tsc`, all stops together. Never too little.
  std::uint64_t ticks(std::uint64_t tsc) const {
    const std::uint64_t since = since_.load(std::memory_order_acquire);
    const std::uint64_t ended = ended_.load(std::memory_order_acquire);
    return ended + (since != 0 && tsc > since ? tsc - since : 0);
  }

 private:
  std::mutex mutex_;
  unsigned depth_ = 0;
  std::atomic<std::uint64_t> version_{0}, since_{0}, ended_{0};  // since_ 0: it runs
};

}  // namespace ringside::vmm
