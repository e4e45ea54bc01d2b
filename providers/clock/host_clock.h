// The host's clocks for the fire thread: TSC, its rate, CLOCK_MONOTONIC and the real time.
// Fire context: yes, except TscCalibration.
#pragma once

#include <cstdint>

#include "vmm/base/host_cpu.h"

namespace ringside::providers {

std::uint64_t monotonic_ns();
std::int64_t realtime_ns();

/// Measures the TSC against CLOCK_MONOTONIC from construction to hertz(). Construct it early: what
/// happens in between (reading symbols, compiling) makes the measurement longer for free.
/// Threads: one.
class TscCalibration {
 public:
  TscCalibration();
  /// Waits until at least 10 ms have passed since construction: then the error is some ppm.
  /// Measured once: over days of uptime, two measurements would lie seconds apart.
  std::uint64_t hertz();
  /// Now, in ns, on the time line of every GuestClock that is made with this rate.
  std::uint64_t now();

 private:
  std::uint64_t tsc_;
  std::uint64_t time_;
  std::uint64_t hertz_ = 0;  // 0: not yet
};

}  // namespace ringside::providers
