// The cost of the aggregation and dynamic variable tables: per update by number of keys, per
// taken key, and with a million keys beside std::unordered_map in the same run.
#include <benchmark/benchmark.h>

#include <cstring>
#include <unordered_map>

#include "dif/engine/aggregate.h"
#include "dif/engine/vcpu_output.h"
#include "dif/evaluate/dynamic_table.h"
#include "dif/program/aggregate_function.h"

namespace ringside::dif {
namespace {

void update_keys(benchmark::State& state) {
  AggregationBuffer buffer(64 << 20);
  const Aggregation count;
  const auto keys = static_cast<std::uint64_t>(state.range(0));
  std::uint64_t next = 0;
  for (auto _ : state) {
    const std::array<std::uint64_t, 2> key{next++ % keys * 0x9e37'79b9, 7};
    const auto slot = buffer.find_or_add(0, std::as_bytes(std::span(key)), 1);
    aggregate_value(count, slot.words, 0, 1, slot.fresh);
  }
}
BENCHMARK(update_keys)->Arg(1)->Arg(1000)->Arg(100000);

void quantize_values(benchmark::State& state) {
  const Aggregation quantize{"", AggregateFunction::Quantize, {}, 0};
  std::array<std::int64_t, kQuantizeBuckets> words{};
  std::uint64_t value = 1;
  for (auto _ : state) aggregate_value(quantize, words, value = value * 5 + 1, 1, false);
}
BENCHMARK(quantize_values);

void take_keys(benchmark::State& state) {
  const RecordShapes shapes;
  RecordBuffer records({}, BufferPolicy::Switch, shapes);
  VcpuOutput output({}, 1, records);
  for (auto _ : state) {
    for (std::uint64_t key = 0; key < 10000; ++key) {
      const auto slot = output.aggregations().find_or_add(0, std::as_bytes(std::span(&key, 1)), 1);
      ++slot.words[0];
    }
    TraceData trace_data;
    output.take(0, trace_data);
    benchmark::DoNotOptimize(trace_data);
  }
  state.SetItemsProcessed(state.iterations() * 10000);
}
BENCHMARK(take_keys);

constexpr std::uint64_t kMillion = 1'000'000;

/// Keys whose bits and order no table can profit from.
constexpr std::uint64_t key_of(std::uint64_t n) {
  n = (n ^ n >> 30) * 0xbf58'476d'1ce4'e5b9;
  n = (n ^ n >> 27) * 0x94d0'49bb'1331'11eb;
  return n ^ n >> 31;
}

/// The cost of one update once a million keys are there. `update` answers with the key's value, and
/// each key depends on the value before: a firing does not overlap with the next one's lookups.
template <class Update>
void million_keys(benchmark::State& state, Update update) {
  for (std::uint64_t n = 0; n < kMillion; ++n) update(key_of(n));
  std::uint64_t next = 0;
  for (auto _ : state) next += 0x9e37'79b9'7f4a'7c15 + (update(key_of(next % kMillion)) >> 63);
}

void million_keys_aggregation(benchmark::State& state) {
  AggregationBuffer buffer(64 << 20);
  million_keys(state, [&](std::uint64_t key) {
    const auto slot = buffer.find_or_add(0, std::as_bytes(std::span(&key, 1)), 1);
    return static_cast<std::uint64_t>(++slot.words[0]);
  });
}
BENCHMARK(million_keys_aggregation);

void million_keys_associative_array(benchmark::State& state) {
  DynamicTable table(128 << 20);
  million_keys(state, [&](std::uint64_t key) {
    const auto at = table.find_or_add(std::as_bytes(std::span(&key, 1)), 8);
    std::uint64_t value;
    std::memcpy(&value, table.arena().data() + *at, sizeof value);
    ++value;
    std::memcpy(table.arena().data() + *at, &value, sizeof value);
    return value;
  });
}
BENCHMARK(million_keys_associative_array);

void million_keys_unordered_map(benchmark::State& state) {
  std::unordered_map<std::uint64_t, std::uint64_t> map;
  million_keys(state, [&](std::uint64_t key) { return ++map[key]; });
}
BENCHMARK(million_keys_unordered_map);

/// The cost of filling, from nothing.
template <class Make>
void fill_million(benchmark::State& state, Make make) {
  for (auto _ : state) {
    auto update = make();
    for (std::uint64_t n = 0; n < kMillion; ++n) update(key_of(n));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kMillion));
}

void fill_million_aggregation(benchmark::State& state) {
  fill_million(state, [] {
    return [buffer = AggregationBuffer(64 << 20)](std::uint64_t key) mutable {
      ++buffer.find_or_add(0, std::as_bytes(std::span(&key, 1)), 1).words[0];
    };
  });
}
BENCHMARK(fill_million_aggregation)->Unit(benchmark::kMillisecond);

void fill_million_associative_array(benchmark::State& state) {
  fill_million(state, [] {
    return [table = DynamicTable(128 << 20)](std::uint64_t key) mutable {
      const auto at = table.find_or_add(std::as_bytes(std::span(&key, 1)), 8);
      table.arena()[*at] ^= std::byte{1};
    };
  });
}
BENCHMARK(fill_million_associative_array)->Unit(benchmark::kMillisecond);

void fill_million_unordered_map(benchmark::State& state) {
  fill_million(state, [] {
    return [map = std::unordered_map<std::uint64_t, std::uint64_t>()](std::uint64_t key) mutable {
      ++map[key];
    };
  });
}
BENCHMARK(fill_million_unordered_map)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ringside::dif

BENCHMARK_MAIN();
