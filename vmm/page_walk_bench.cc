// Measures one guest read: the walk alone, a first read of a firing (walk + copy), and a
// second read of the same page.
#include <benchmark/benchmark.h>

#include <vector>

#include "vmm/page_walk.h"

namespace ringside::vmm {
namespace {

constexpr std::uint64_t kMapped = 0xffff'8880'0000'0000;

/// Five levels of tables in the first pages of RAM and one mapped page at 0x6000.
class Tables {
 public:
  Tables() : bytes_(1 << 20), memory_({{GuestPhys(0), bytes_}}) {
    for (unsigned level = 5; level >= 1; --level) {
      const std::uint64_t index = (kMapped >> (12 + 9 * (level - 1))) & 511;
      const std::uint64_t table = (6 - level) * 0x1000;
      (void)memory_.store64(GuestPhys(table + index * 8), (table + 0x1000) | 3);
    }
  }
  const GuestMemory& memory() const { return memory_; }
  PageTable table() const { return {GuestPhys(0x1000), 5, 0}; }

 private:
  std::vector<std::byte> bytes_;
  GuestMemory memory_;
};

void walk_five_levels(benchmark::State& state) {
  const Tables tables;
  for (auto _ : state) {
    benchmark::DoNotOptimize(translate(tables.memory(), tables.table(), GuestVirt(kMapped)));
  }
}
BENCHMARK(walk_five_levels);

void first_read_of_a_firing(benchmark::State& state) {
  const Tables tables;
  const PageTableReader reader(tables.memory(), tables.table());
  for (auto _ : state) {
    reader.forget();
    benchmark::DoNotOptimize(load<std::uint64_t>(reader, GuestVirt(kMapped + 64)));
  }
}
BENCHMARK(first_read_of_a_firing);

void later_read_of_the_same_page(benchmark::State& state) {
  const Tables tables;
  const PageTableReader reader(tables.memory(), tables.table());
  for (auto _ : state) {
    benchmark::DoNotOptimize(load<std::uint64_t>(reader, GuestVirt(kMapped + 64)));
  }
}
BENCHMARK(later_read_of_the_same_page);

}  // namespace
}  // namespace ringside::vmm

BENCHMARK_MAIN();
