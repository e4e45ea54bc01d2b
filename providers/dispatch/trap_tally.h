// The cost of traps: how many each CPU had, and how long each one waited for the host. The wait
// begins when the shim reads the TSC, and ends when the host is done with the trap. The time of the
// exception itself, before and after that, cannot be measured here.
// Used by the dispatcher, which counts, by reports, and by the budget (budget.h). Threads: add() of
// one CPU by one at a time, under its firing lock; everything else any.
// Fire context: add() yes; everything else no.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ringside::providers {

/// Waits by powers of two, as quantize() counts: [n] are those of 2^n ns and more, but less than
/// 2^(n+1); the first has those of 0 ns, too.
struct WaitHistogram {
  std::array<std::uint64_t, 64> waits{};

  std::uint64_t total() const;
  WaitHistogram& operator+=(const WaitHistogram& other);
};

/// The traps of one CPU since tracing began.
struct CpuTraps {
  std::uint64_t traps = 0, waited = 0;  // ns
};

class TrapTally {
 public:
  explicit TrapTally(unsigned cpus) : cpus_(cpus) {}

  void add(std::uint32_t cpu, std::uint64_t waited) {
    CpuTally& cpu_tally = cpus_[cpu];
    increase(cpu_tally.waits[std::bit_width(waited | 1) - 1], 1);
    increase(cpu_tally.waited, waited);
  }
  /// One that waited for nobody.
  void add_recorded(std::uint32_t cpu) { increase(cpus_[cpu].recorded, 1); }
  /// With those that were recorded.
  std::vector<CpuTraps> by_cpu() const;
  /// Of those that waited.
  WaitHistogram histogram() const;
  std::uint64_t recorded() const;

 private:
  using Counter = std::atomic<std::uint64_t>;
  struct alignas(64) CpuTally {
    std::array<Counter, 64> waits{};
    Counter waited = 0, recorded = 0;
  };
  /// One thread at a time writes, so no locked instruction is needed.
  static void increase(Counter& counter, std::uint64_t by) {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  std::vector<CpuTally> cpus_;
};

}  // namespace ringside::providers
