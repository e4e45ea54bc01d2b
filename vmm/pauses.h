// Counts how often and for how long we paused a machine. A pause lasts from the request until the
// vCPUs were let go, so it is never shorter than for the guest. Pauses that overlap count as one.
// Threads: every function from any. Fire context: no.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace ringside::vmm {

struct Pauses {
  std::uint64_t count = 0;
  std::chrono::nanoseconds total{}, longest{};

  /// "3 times, for 2.5 ms in all, for 1.2 ms at the longest".
  std::string describe() const;
};

class PauseLog {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void begin(Time asked);
  /// Ends a pause that has begun, or that failed.
  void end(Time let_go);
  Pauses pauses() const;

 private:
  mutable std::mutex mutex_;
  unsigned open_ = 0;  // pauses that have begun
  Time since_;         // of the first of those
  Pauses pauses_;
};

}  // namespace ringside::vmm
