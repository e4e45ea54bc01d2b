// How long a vCPU was in the guest and out of it: the values of VcpuEvent::Kind::Exit.
// Fire context: yes.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ringside::vmm::kvm {

class ExitTimes {
 public:
  /// Both: nanoseconds of a clock that only grows.
  void enter(std::uint64_t now) {
    entered_ = now;
    outside_ = left_ == 0 ? 0 : entered_ - std::min(left_, entered_);
  }
  void leave(std::uint64_t now) { left_ = now; }

  /// Whether the entry before the exit was timed.
  bool known() const { return entered_ != 0; }
  /// Nanoseconds in the guest before the exit.
  std::uint64_t inside() const { return left_ - std::min(left_, entered_); }
  /// Nanoseconds out of the guest before that; 0 for the first entry.
  std::uint64_t outside() const { return outside_; }

 private:
  std::uint64_t entered_ = 0, left_ = 0, outside_ = 0;
};

}  // namespace ringside::vmm::kvm
