// The cost on the host of a recorded trap, from its ring to the aggregation or the principal
// buffer: for `@[execname] = count()`, and for a printf() of three values.
#include <benchmark/benchmark.h>

#include <memory>
#include <utility>

#include "dif/engine/engine.h"
#include "dif/testing/make_dif.h"
#include "dif/verify/verify.h"
#include "providers/dispatch/engine_sink.h"
#include "providers/testing/recording_guest.h"

namespace ringside::providers {
namespace {

using namespace dif::testing;

constexpr unsigned kCpus = 2;

dif::Program print_three() {
  return program({clause(
      {action(dif::ActionKind::Printf, {builtin(dif::Builtin::Pid), builtin(dif::Builtin::Arg0),
                                        builtin(dif::Builtin::Timestamp)})})});
}

dif::Engine& with_probe(dif::Engine& engine) {
  engine.enable(0, kRecordedProbe, {"p", "", "", "n"});
  return engine;
}

/// Fills the rings of both CPUs, and replays them.
void replay(benchmark::State& state, dif::Program made) {
  dif::Engine engine{*dif::verify_program(std::move(made)), {}, kCpus};
  EngineSink sink{with_probe(engine), kCpus};
  RecordingGuest guest(kGigahertz, vmm::Reach::Mapped, {}, &sink);
  std::int64_t records = 0;
  for (auto _ : state) {
    state.PauseTiming();
    for (std::uint64_t n = 0; n < guest.capacity(); ++n) {
      for (unsigned cpu = 0; cpu < kCpus; ++cpu) guest.record(std::size_t{2} * cpu, n);
    }
    records += static_cast<std::int64_t>(kCpus * guest.capacity());
    (void)engine.take();
    state.ResumeTiming();
    guest.replay.drain();
  }
  state.SetItemsProcessed(records);
}
BENCHMARK_CAPTURE(replay, count_by_execname, count_by_execname());
BENCHMARK_CAPTURE(replay, print_three, print_three());

}  // namespace
}  // namespace ringside::providers

BENCHMARK_MAIN();
