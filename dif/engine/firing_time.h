// Limits the time of a firing, because a vCPU waits for it. Each step of a clause asks. The clock
// is read only when the steps so far may have cost enough, so a firing of a few steps never reads
// it.
// Fire context: yes.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ringside::dif {

class FiringTime {
 public:
  /// ns, from the first look on; dtrace:::ERROR gets as much once more. The shim's timeout is as
  /// long, and the guest's watchdogs are far more patient.
  static constexpr std::uint64_t kMost = 3'000'000'000;
  /// Simple instructions between two looks. A step counts as some at least, since what it reads may
  /// be far away.
  static constexpr std::uint64_t kLookEvery = 1 << 14, kLeastOfStep = 1 << 9;

  void begin() { *this = {}; }
  /// Whether the firing is to end here. `work` is what the step may cost; `now()` tells ns.
  template <class Clock>
  bool is_over(std::uint64_t work, Clock now) {
    work_ += std::max(work, kLeastOfStep);
    if (work_ < kLookEvery) return false;
    work_ = 0;
    const std::uint64_t time = now();
    if (last_ == 0) last_ = time + kMost;
    if (time <= last_) return false;
    if (!was_over_) last_ = time + kMost;
    was_over_ = true;
    return true;
  }
  bool was_over() const { return was_over_; }

 private:
  std::uint64_t work_ = 0;  // since the last look
  std::uint64_t last_ = 0;  // ns; 0: there was no look yet
  bool was_over_ = false;
};

}  // namespace ringside::dif
