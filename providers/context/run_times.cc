#include "providers/context/run_times.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace ringside::providers {
namespace {

/// Fibonacci hashing: task_structs lie at multiples of their size.
constexpr std::uint64_t kSpread = 0x9e37'79b9'7f4a'7c15;

std::uint64_t difference(std::uint64_t later, std::uint64_t earlier) {
  return later > earlier ? later - earlier : 0;
}

}  // namespace

RunTimes::Seen& RunTimes::place_of(const Thread& thread) {
  return seen_[(thread.task.raw() * kSpread >> 32) % kSeen];
}

std::uint64_t RunTimes::show(const Thread& thread, std::uint64_t ran,
                             std::optional<std::uint64_t> time) {
  is_asked_.store(true, std::memory_order_relaxed);
  Seen& seen = place_of(thread);
  const std::lock_guard lock(seen.lock);
  if (seen.thread != thread) {
    seen.thread = thread;
    seen.ran = seen.shown = ran;
    seen.waited = 0;
    seen.timed.reset();
  }
  const std::uint64_t waited = std::exchange(seen.waited, 0);
  std::uint64_t shown = seen.shown + difference(difference(ran, seen.ran), waited);
  if (time) {
    if (seen.timed) {
      const std::uint64_t passed = difference(*time, seen.timed->time);
      shown = std::max(seen.shown, std::min(shown, seen.timed->shown + difference(passed, waited)));
    }
    seen.timed = {*time, shown};
  }
  seen.ran = std::max(seen.ran, ran);
  return seen.shown = shown;
}

void RunTimes::waited(const Thread& thread, std::uint64_t nanoseconds) {
  Seen& seen = place_of(thread);
  const std::lock_guard lock(seen.lock);
  if (seen.thread == thread) seen.waited += nanoseconds;
}

}  // namespace ringside::providers
