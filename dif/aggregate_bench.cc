// What the aggregation table costs per update, by number of keys, and per harvested key.
#include <benchmark/benchmark.h>

#include "dif/aggregate.h"
#include "dif/aggregate_function.h"
#include "dif/collection.h"

namespace ringside::dif {
namespace {

void update_keys(benchmark::State& state) {
  AggregationBuffer buffer(64 << 20);
  const Aggregation count;
  const auto keys = static_cast<std::uint64_t>(state.range(0));
  std::uint64_t next = 0;
  for (auto _ : state) {
    const std::array<std::uint64_t, 2> key{next++ % keys * 0x9e37'79b9, 7};
    const auto slot = buffer.find_or_add(0, std::as_bytes(std::span(key)), 1, next);
    aggregate_value(count, slot.words, 0, 1, slot.fresh);
  }
}
BENCHMARK(update_keys)->Arg(1)->Arg(1000)->Arg(100000);

void quantize_values(benchmark::State& state) {
  const Aggregation quantize{"", AggregateFunction::Quantize, {}, true, 0};
  std::array<std::int64_t, kQuantizeBuckets> words{};
  std::uint64_t value = 1;
  for (auto _ : state) aggregate_value(quantize, words, value = value * 5 + 1, 1, false);
}
BENCHMARK(quantize_values);

void harvest_keys(benchmark::State& state) {
  const RecordShapes shapes;
  Collection collection({}, 1, shapes);
  for (auto _ : state) {
    for (std::uint64_t key = 0; key < 10000; ++key) {
      const auto slot =
          collection.aggregations().find_or_add(0, std::as_bytes(std::span(&key, 1)), 1, key);
      ++slot.words[0];
    }
    benchmark::DoNotOptimize(collection.harvest());
  }
  state.SetItemsProcessed(state.iterations() * 10000);
}
BENCHMARK(harvest_keys);

}  // namespace
}  // namespace ringside::dif

BENCHMARK_MAIN();
