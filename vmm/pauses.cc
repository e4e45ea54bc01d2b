#include "vmm/pauses.h"

#include <fmt/format.h>

#include <algorithm>

namespace ringside::vmm {

std::string Pauses::describe() const {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  return fmt::format("{} time{}, for {:.1f} ms in all, for {:.1f} ms at the longest", count,
                     count == 1 ? "" : "s", Milliseconds(total).count(),
                     Milliseconds(longest).count());
}

void PauseLog::begin(Time asked) {
  const std::lock_guard lock(mutex_);
  if (open_++ == 0) since_ = asked;
}

void PauseLog::end(Time let_go) {
  const std::lock_guard lock(mutex_);
  if (--open_ != 0) return;
  const std::chrono::nanoseconds length = let_go - since_;
  ++pauses_.count;
  pauses_.total += length;
  pauses_.longest = std::max(pauses_.longest, length);
}

Pauses PauseLog::pauses() const {
  const std::lock_guard lock(mutex_);
  return pauses_;
}

}  // namespace ringside::vmm
