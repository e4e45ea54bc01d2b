// The cost of evaluation, by the interpreter (/0) and by compiled code (/1): simple instructions, a
// guest load, whole firings, and what compiling a program takes.
#include <benchmark/benchmark.h>

#include "dif/engine/engine.h"
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

EngineOptions options_of(const benchmark::State& state) {
  EngineOptions options;
  options.jit = state.range(0) != 0;
  return options;
}

void evaluate_object(benchmark::State& state, Difo object) {
  const Program whole = program({clause({action(ActionKind::Trace, {std::move(object)})})});
  const Difo& evaluated = whole.clauses[0].actions[0].arguments[0];
  const EngineOptions options = options_of(state);
  SharedState shared(whole, options, 1);
  SpeculationIds speculations;
  Evaluator evaluator(whole, options, shared, speculations, 0);
  const FlatGuest guest;
  const FireRecord record;
  evaluator.begin_firing({}, record, guest);
  for (auto _ : state) benchmark::DoNotOptimize(evaluator.evaluate(evaluated));
}

void simple_instructions(benchmark::State& state) {
  constexpr int kInstructions = 1000;
  std::vector<std::uint32_t> text;
  for (int i = 0; i < kInstructions - 1; i += 3) {
    text.push_back(encode(Opcode::Add, 1, 2, 3));
    text.push_back(encode(Opcode::Xor, 3, 1, 2));
    text.push_back(encode(Opcode::Sll, 2, 1, 1));
  }
  text.push_back(encode_return(1));
  const auto count = static_cast<std::int64_t>(text.size());
  evaluate_object(state, difo(std::move(text)));
  state.SetItemsProcessed(state.iterations() * count);
}
BENCHMARK(simple_instructions)->Arg(0)->Arg(1);

void guest_load_in_cached_line(benchmark::State& state) {
  evaluate_object(state, load_from(0xffff'8880'0000'1000));
}
BENCHMARK(guest_load_in_cached_line)->Arg(0)->Arg(1);

void fire_program(benchmark::State& state, Program source) {
  Engine engine(*verify_program(std::move(source)), options_of(state), 1);
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
BENCHMARK(fire_count_by_execname)->Arg(0)->Arg(1);

void fire_trace_timestamp(benchmark::State& state) {
  fire_program(state,
               program({clause({action(ActionKind::Trace, {builtin(Builtin::Timestamp)})})}));
}
BENCHMARK(fire_trace_timestamp)->Arg(0)->Arg(1);

/// `execname == "other"`
Difo is_other() {
  Difo object =
      difo({encode_indexed(Opcode::Ldgs, 0x118, 1), encode_indexed(Opcode::Sets, 1, 2),
            encode(Opcode::Scmp, 1, 2), encode_branch(Opcode::Be, 6), encode(Opcode::Mov, 0, 0, 1),
            encode_return(1), encode(Opcode::Mov, 2, 0, 1), encode_return(1)});
  object.strings += std::string("other") + '\0';
  return object;
}

void fire_false_predicate(benchmark::State& state) {
  Program source = count_by_execname();
  source.clauses[0].predicate = is_other();
  fire_program(state, std::move(source));
}
BENCHMARK(fire_false_predicate)->Arg(0)->Arg(1);

/// A program of 1,000 clauses, each with a predicate and a key.
void compile_1000_clauses(benchmark::State& state) {
  Program source = count_by_execname();
  source.clauses[0].predicate = is_other();
  source.clauses.resize(1000, source.clauses[0]);
  const ConstantStrings constants(source);
  for (auto _ : state) {
    NativeCode code;
    code.compile(source, constants);
    benchmark::DoNotOptimize(code.find(*source.clauses[0].predicate));
  }
}
BENCHMARK(compile_1000_clauses)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ringside::dif

BENCHMARK_MAIN();
