// The cost of evaluation: simple instructions, a guest load, and a whole firing of
// @[execname] = count().
#include <benchmark/benchmark.h>

#include "dif/evaluate/evaluate.h"
#include "dif/testing/fake_guest.h"
#include "dif/testing/make_dif.h"
#include "dif/verify/verify.h"

namespace ringside::dif {
namespace {

using namespace testing;

/// A guest that answers from one array, so that the evaluator is what is measured.
class FlatMemory final : public GuestReader {
 public:
  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
    std::memcpy(out.data(), bytes_.data() + at.raw() % 4096, out.size());
    return {};
  }

 private:
  std::array<std::byte, 8192> bytes_{};
};

class FlatGuest final : public GuestContext {
 public:
  Result<std::uint64_t, Fault> variable(ContextVariable) const override { return 7; }
  Result<std::size_t, Fault> execname(std::span<char> out) const override {
    std::memcpy(out.data(), "workload", 8);
    return 8;
  }
  Result<std::uint64_t, Fault> argument(unsigned n) const override { return n; }
  const GuestReader& kernel() const override { return memory_; }
  const GuestReader& user() const override { return memory_; }

 private:
  FlatMemory memory_;
};

void simple_instructions(benchmark::State& state) {
  constexpr int kInstructions = 1000;
  std::vector<std::uint32_t> text;
  for (int i = 0; i < kInstructions - 1; i += 3) {
    text.push_back(encode(Opcode::Add, 1, 2, 3));
    text.push_back(encode(Opcode::Xor, 3, 1, 2));
    text.push_back(encode(Opcode::Sll, 2, 1, 1));
  }
  text.push_back(encode_return(1));
  const Difo object = difo(text);
  const Program nothing = program({});
  SharedState shared(nothing, {}, 1);
  SpeculationIds speculations;
  Evaluator evaluator(nothing, {}, shared, speculations, 0);
  for (auto _ : state) benchmark::DoNotOptimize(evaluator.evaluate(object));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(simple_instructions);

void guest_load_in_cached_line(benchmark::State& state) {
  const Difo object = load_from(0xffff'8880'0000'1000);
  const Program nothing = program({});
  SharedState shared(nothing, {}, 1);
  SpeculationIds speculations;
  Evaluator evaluator(nothing, {}, shared, speculations, 0);
  const FlatGuest guest;
  const FireRecord record;
  evaluator.begin_firing({}, record, guest);
  for (auto _ : state) benchmark::DoNotOptimize(evaluator.evaluate(object));
}
BENCHMARK(guest_load_in_cached_line);

void fire_program(benchmark::State& state, Program source) {
  Engine engine(*verify_program(std::move(source)), {}, 1);
  engine.enable(0, ProbeId{1}, {"fbt", "vmlinux", "vfs_read", "entry"});
  const FlatGuest guest;
  const FireRecord record{0, 1000, 0};
  std::uint64_t fired = 0;
  for (auto _ : state) {
    engine.fire(ProbeId{1}, record, guest);
    if (++fired % 65536 == 0) {
      state.PauseTiming();
      benchmark::DoNotOptimize(engine.take_quiescent());
      state.ResumeTiming();
    }
  }
}

void fire_count_by_execname(benchmark::State& state) {
  fire_program(state, count_by_execname());
}
BENCHMARK(fire_count_by_execname);

void fire_trace_timestamp(benchmark::State& state) {
  fire_program(state,
               program({clause({action(ActionKind::Trace, {builtin(Builtin::Timestamp)})})}));
}
BENCHMARK(fire_trace_timestamp);

void fire_false_predicate(benchmark::State& state) {
  Program source = count_by_execname();
  source.clauses[0].predicate =
      difo({encode_indexed(Opcode::Ldgs, 0x118, 1), encode_indexed(Opcode::Sets, 1, 2),
            encode(Opcode::Scmp, 1, 2), encode_branch(Opcode::Be, 6), encode(Opcode::Mov, 0, 0, 1),
            encode_return(1), encode(Opcode::Mov, 2, 0, 1), encode_return(1)});
  source.clauses[0].predicate->strings += std::string("other") + '\0';
  fire_program(state, std::move(source));
}
BENCHMARK(fire_false_predicate);

}  // namespace
}  // namespace ringside::dif

BENCHMARK_MAIN();
