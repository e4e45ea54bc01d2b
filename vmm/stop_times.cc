#include "vmm/stop_times.h"

#include <fmt/format.h>

#include <algorithm>

namespace ringside::vmm {

std::string Pauses::describe() const {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  return fmt::format("{} time{}, for {:.1f} ms in all, for {:.1f} ms at the longest", count,
                     count == 1 ? "" : "s", Milliseconds(total).count(),
                     Milliseconds(longest).count());
}

void StopTimes::begin(std::uint64_t tsc) {
  const std::lock_guard lock(mutex_);
  if (depth_++ != 0) return;
  since_.store(tsc, std::memory_order_release);
  version_.fetch_add(1, std::memory_order_release);
}

void StopTimes::end(std::uint64_t tsc) {
  const std::lock_guard lock(mutex_);
  if (depth_ == 0 || --depth_ != 0) return;
  const std::uint64_t since = since_.load(std::memory_order_relaxed);
  // Whoever reads both in between counts this stop twice, which is not too little.
  if (tsc > since) ended_.fetch_add(tsc - since, std::memory_order_release);
  since_.store(0, std::memory_order_release);
  version_.fetch_add(1, std::memory_order_release);
}

void StopTimes::begin_pause(std::uint64_t tsc, Time asked) {
  begin(tsc);
  const std::lock_guard lock(mutex_);
  if (open_pauses_++ == 0) paused_since_ = asked;
}

void StopTimes::end_pause(std::uint64_t tsc, Time let_go) {
  end(tsc);
  const std::lock_guard lock(mutex_);
  if (--open_pauses_ != 0) return;
  const std::chrono::nanoseconds length = let_go - paused_since_;
  ++pauses_.count;
  pauses_.total += length;
  pauses_.longest = std::max(pauses_.longest, length);
}

Pauses StopTimes::pauses() const {
  const std::lock_guard lock(mutex_);
  return pauses_;
}

}  // namespace ringside::vmm
