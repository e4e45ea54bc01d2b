#include "providers/dispatch/trap_tally.h"

#include <numeric>

namespace ringside::providers {

std::uint64_t WaitHistogram::total() const {
  return std::accumulate(waits.begin(), waits.end(), std::uint64_t{0});
}

WaitHistogram& WaitHistogram::operator+=(const WaitHistogram& other) {
  for (std::size_t n = 0; n < waits.size(); ++n) waits[n] += other.waits[n];
  return *this;
}

std::vector<CpuTraps> TrapTally::by_cpu() const {
  std::vector<CpuTraps> all;
  for (const CpuTally& cpu_tally : cpus_) {
    CpuTraps& cpu = all.emplace_back();
    for (const Counter& count : cpu_tally.waits) cpu.traps += count.load(std::memory_order_relaxed);
    cpu.traps += cpu_tally.recorded.load(std::memory_order_relaxed);
    cpu.waited = cpu_tally.waited.load(std::memory_order_relaxed);
  }
  return all;
}

std::uint64_t TrapTally::recorded() const {
  std::uint64_t sum = 0;
  for (const CpuTally& cpu_tally : cpus_) sum += cpu_tally.recorded.load(std::memory_order_relaxed);
  return sum;
}

WaitHistogram TrapTally::histogram() const {
  WaitHistogram sum;
  for (const CpuTally& cpu_tally : cpus_) {
    for (std::size_t n = 0; n < sum.waits.size(); ++n) {
      sum.waits[n] += cpu_tally.waits[n].load(std::memory_order_relaxed);
    }
  }
  return sum;
}

}  // namespace ringside::providers
