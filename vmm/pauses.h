// How often and for how long a machine was made to stand still: what its guest feels of us. A
// pause counts from the moment in which it is asked for until the vCPUs have been let go, so it is
// never shorter than what the guest felt. Pauses that overlap are one.
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
  /// Of a pause that has begun, or that could not be made.
  void end(Time let_go);
  Pauses pauses() const;

 private:
  mutable std::mutex mutex_;
  unsigned open_ = 0;  // pauses that have begun
  Time since_;         // of the first of those
  Pauses pauses_;
};

}  // namespace ringside::vmm
