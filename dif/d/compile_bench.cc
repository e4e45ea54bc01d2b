// How long the compiler takes: a one-liner, and a script of 1,000 lines.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "dif/d/testing/program_runner.h"

namespace ringside::d {
namespace {

std::string thousand_lines() {
  std::string source = "struct point { int x, y; };\nstring names[int];\n";
  for (int i = 0; i < 142; ++i) {
    source += fmt::format(
        "uint64_t total{0}[string, pid_t];\n"
        "fbt:vmlinux:vfs_read:entry\n/pid > {0} && execname != \"x{0}\"/\n{{\n"
        "  self->start{0} = timestamp; total{0}[execname, pid] += arg0 * {0};\n"
        "  @reads{0}[execname, args[1]->pid] = quantize(total{0}[execname, pid]);\n}}\n",
        i);
  }
  return source;
}

void compile_it(benchmark::State& state, const std::string& source) {
  FakeKernel kernel;
  for (auto _ : state) {
    const auto program = compile(source, {}, kernel);
    if (!program) state.SkipWithError(program.error().text.c_str());
    benchmark::DoNotOptimize(program);
  }
}

void compile_one_liner(benchmark::State& state) {
  compile_it(state, "fbt::vfs_read:entry { @[execname] = count(); }");
}
BENCHMARK(compile_one_liner)->Unit(benchmark::kMicrosecond);

void compile_thousand_lines(benchmark::State& state) {
  compile_it(state, thousand_lines());
}
BENCHMARK(compile_thousand_lines)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ringside::d

BENCHMARK_MAIN();
