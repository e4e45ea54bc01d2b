// How fast a flame graph of many stacks is drawn: 10,000 distinct ones of 24 frames, from their
// records to the SVG's text, and the text alone. How many firings a second become a file for
// Perfetto: the file alone, and from records.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "cli/pictures/flame_svg.h"
#include "cli/pictures/perfetto_trace.h"
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

constexpr unsigned kThreads = 64, kCalls = 16;  // a round of a thread is so many calls, half inside
                                                // of others

/// Calls of functions on 64 threads of 4 vCPUs, each with an argument and a result.
void perfetto_of_firings(benchmark::State& state) {
  PerfettoTrace trace;
  PerfettoTrace::Machine& machine = *trace.machine("web1");
  std::vector<PerfettoTrace::Probe*> entries, returns;
  for (unsigned i = 0; i < kCalls; ++i) {
    const std::string function = fmt::format("function_{}", i);
    entries.push_back(&trace.probe({"fbt", "vmlinux", function, "entry"}));
    returns.push_back(&trace.probe({"fbt", "vmlinux", function, "return"}));
  }
  std::uint64_t time = 1'000'000, bytes = 0, firings = 0;
  const auto fire = [&](PerfettoTrace::Probe& probe, std::uint32_t thread) {
    trace.begin({machine, probe, thread % 4, time += 100,
                 PerfettoTrace::Thread{1000, 1000 + thread, "worker"}});
    trace.note("value", static_cast<std::int64_t>(time));
    trace.end();
    ++firings;
  };
  for (auto _ : state) {
    for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
      for (unsigned i = 0; i < kCalls; i += 2) {
        fire(*entries[i], thread);
        fire(*entries[i + 1], thread);
        fire(*returns[i + 1], thread);
        fire(*returns[i], thread);
      }
    }
    bytes += trace.take().size();
  }
  CHECK(!trace.is_empty());
  state.SetItemsProcessed(static_cast<std::int64_t>(firings));
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
}
BENCHMARK(perfetto_of_firings);

void perfetto_of_records(benchmark::State& state) {
  const auto picture = make_picture(OutputFormat::Perfetto);
  Tree output = Tree::array();
  output.push_back({{"type", "int64_t"}, {"value", 42}});
  Tree record = {{"timestamp", 1},
                 {"machine", "web1"},
                 {"cpu", 0},
                 {"id", 7},
                 {"provider", "fbt"},
                 {"module", "vmlinux"},
                 {"function", "vfs_read"},
                 {"name", "entry"},
                 {"pid", 1000},
                 {"tid", 1000},
                 {"execname", "worker"},
                 {"output", std::move(output)}};
  std::uint64_t time = 1'000'000;
  for (auto _ : state) {
    record["timestamp"] = time += 100;
    record["name"] = time / 100 % 2 == 0 ? "entry" : "return";
    CHECK(picture->add(record).has_value());
    benchmark::DoNotOptimize(picture->take_text());
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}
BENCHMARK(perfetto_of_records);

}  // namespace
}  // namespace ringside::cli

BENCHMARK_MAIN();
