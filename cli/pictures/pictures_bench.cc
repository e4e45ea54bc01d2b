// How fast a flame graph of many stacks is drawn: 10,000 distinct ones of 24 frames, from their
// records to the SVG's text, and the text alone.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "cli/pictures/flame_svg.h"
#include "cli/pictures/pictures.h"
#include "cli/pictures/stack_counts.h"
#include "vmm/base/check.h"

namespace ringside::cli {
namespace {

constexpr unsigned kStacks = 10'000, kDepth = 24, kFunctions = 4'000;

/// An aggregation as -O jsonl writes it. The deeper a frame, the more stacks differ in it.
Tree made_record() {
  Tree data = Tree::array();
  for (unsigned n = 0; n < kStacks; ++n) {
    Tree stack = Tree::array();
    for (unsigned level = kDepth; level > 0; --level) {
      const unsigned function = (level * 131 + n % (1 + level * level * 20)) % kFunctions;
      const std::string symbol = fmt::format("function_{}", function);
      stack.push_back({{"address", fmt::format("0xffffffff81{:06x}", function * 256 + 16)},
                       {"name", fmt::format("vmlinux`{}+0x10", symbol)},
                       {"module", "vmlinux"},
                       {"symbol", symbol},
                       {"offset", 16}});
    }
    Tree keys = Tree::array();
    keys.push_back(fmt::format("process-{}", n % 20));
    keys.push_back(std::move(stack));
    data.push_back({{"keys", std::move(keys)}, {"count", 1 + n % 100}});
  }
  Tree output = Tree::array();
  output.push_back({{"aggregation-data", std::move(data)},
                    {"aggregation-name", "_"},
                    {"aggregation-function", "count"}});
  return {{"timestamp", 1}, {"name", "AGGREGATIONS"}, {"output", std::move(output)}};
}

void flame_of_records(benchmark::State& state) {
  const Tree record = made_record();
  std::size_t bytes = 0;
  for (auto _ : state) {
    const auto picture = make_picture(OutputFormat::Flame);
    CHECK(picture->add(record).has_value());
    bytes = picture->draw()->text.size();
  }
  state.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK(flame_of_records)->Unit(benchmark::kMillisecond);

void flame_of_stacks(benchmark::State& state) {
  StackTable table;
  CHECK(table.add(made_record()).has_value());
  const std::vector<StackCounts> counts = table.counts();
  CHECK(counts.size() == 1);
  state.counters["stacks"] = static_cast<double>(counts[0].samples.size());
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        flame_svg({{counts[0].name, counts[0].samples, {}}}, table.names()).size());
  }
}
BENCHMARK(flame_of_stacks)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ringside::cli

BENCHMARK_MAIN();
