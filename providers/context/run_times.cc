#include "providers/context/run_times.h"

#include <algorithm>
#include <mutex>

namespace ringside::providers {
namespace {

/// Fibonacci hashing: task_structs lie at multiples of their size.
constexpr std::uint64_t kSpread = 0x9e37'79b9'7f4a'7c15;

}  // namespace

std::uint64_t RunTimes::show(const Thread& thread, std::uint64_t ran,
                             std::optional<std::uint64_t> time) {
  Seen& seen = seen_[(thread.task.raw() * kSpread >> 32) % kSeen];
  const std::lock_guard lock(seen.lock);
  if (seen.thread != thread) {
    seen.thread = thread;
    seen.ran = seen.shown = ran;
    seen.timed.reset();
  }
  std::uint64_t shown = seen.shown + (ran > seen.ran ? ran - seen.ran : 0);
  if (time) {
    if (seen.timed) {
      const std::uint64_t passed = *time > seen.timed->time ? *time - seen.timed->time : 0;
      shown = std::max(seen.shown, std::min(shown, seen.timed->shown + passed));
    }
    seen.timed = {*time, shown};
  }
  seen.ran = std::max(seen.ran, ran);
  return seen.shown = shown;
}

}  // namespace ringside::providers
