// How fast records become text: printf() records through the whole consumer to /dev/null and to a
// pipe whose reader only reads, beside fprintf() of the same numbers to the same places; and trees,
// as the library and pictures take them.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <thread>

#include "cli/output/output.h"
#include "cli/output/structured_writer.h"
#include "vmm/base/check.h"

namespace ringside::cli {
namespace {

constexpr std::size_t kRecords = 10'000;  // taken at once
constexpr std::size_t kRecordSize = 32;

/// printf("%s %d %x\n", execname, pid, arg0) on one probe, or trace(arg0).
class PrintfProgram final : public ProgramView {
 public:
  enum class Action : std::uint8_t { Printf, Trace };
  explicit PrintfProgram(Action kind = Action::Printf) {
    dif::Action& action = program_.clauses.emplace_back().actions.emplace_back();
    ecb_.id.value = 1;
    ecb_.probe.value = 1;
    ecb_.fields = {{0, 0, 0, 16, {dif::ValueKind::String, false, 0}},
                   {0, 1, 16, 4, {dif::ValueKind::Integer, true, 4}},
                   {0, 2, 24, 8, {dif::ValueKind::Integer, true, 8}}};
    if (kind == Action::Printf) {
      action.kind = dif::ActionKind::Printf;
      action.format = "%s %d %x\n";
    } else {
      action.kind = dif::ActionKind::Trace;
      ecb_.fields = {{0, 0, 24, 8, {dif::ValueKind::Integer, true, 8}}};
    }
  }
  const dif::Program& program() const override { return program_; }
  const dif::EcbInfo& ecb(dif::EcbId) const override { return ecb_; }
  const dif::ProbeDescription& probe_name(dif::ProbeId) const override { return name_; }
  std::string describe(GuestVirt) const override { return {}; }

 private:
  dif::Program program_;
  dif::EcbInfo ecb_;
  dif::ProbeDescription name_{"syscall", "vmlinux", "read", "entry"};
};

dif::TraceData fired_records() {
  dif::TraceData made;
  std::vector<std::byte>& bytes = made.storage.emplace_back(kRecords * kRecordSize);
  for (std::size_t i = 0; i < kRecords; ++i) {
    std::byte* const at = bytes.data() + i * kRecordSize;
    const auto pid = static_cast<std::int32_t>(1000 + i);
    const std::uint64_t argument = 0xffff'8880'0000'0000 + i * 64;
    std::memcpy(at, "workload", 8);
    std::memcpy(at + 16, &pid, sizeof pid);
    std::memcpy(at + 24, &argument, sizeof argument);
    made.records.push_back({dif::EcbId{1}, 0, i, std::span(at, kRecordSize)});
  }
  return made;
}

/// Where a bench writes: /dev/null, or a pipe that a thread empties.
class Target {
 public:
  explicit Target(bool pipe_wanted) {
    if (!pipe_wanted) {
      write_end_ = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
      CHECK(write_end_ >= 0);
      return;
    }
    std::array<int, 2> ends{};
    CHECK(::pipe(ends.data()) == 0);
    write_end_ = ends[1];
    reader_ = std::thread([fd = ends[0]] {
      std::array<char, 1 << 16> buffer;
      while (::read(fd, buffer.data(), buffer.size()) > 0) continue;
      ::close(fd);
    });
  }
  ~Target() {
    ::close(write_end_);
    if (reader_.joinable()) reader_.join();
  }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;
  int fd() const { return write_end_; }

 private:
  int write_end_ = -1;
  std::thread reader_;
};

/// Consumes the same records again and again.
void consume_records(benchmark::State& state, const ProgramView& program, Settings& settings,
                     const Target& target) {
  const dif::TraceData records = fired_records();
  Sink sink(target.fd());
  auto output = Output::create(program, settings, sink);
  CHECK(output.has_value());
  for (auto _ : state) {
    output->consume(records);
    sink.flush();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kRecords));
}

void format_records(benchmark::State& state) {
  const Target target(state.range(0) != 0);
  Settings settings;
  settings.quiet = state.range(1) != 0;
  consume_records(state, PrintfProgram(), settings, target);
}
BENCHMARK(format_records)
    ->ArgNames({"pipe", "quiet"})
    ->ArgsProduct({{0, 1}, {0, 1}})
    ->UseRealTime();

class NoWriter final : public RecordWriter {
 public:
  void record(Tree&& tree) override { benchmark::DoNotOptimize(Tree(std::move(tree)).size()); }
  Result<std::vector<std::string>> finish() override { return {}; }
};

void records_to_perfetto(benchmark::State& state) {
  const Target target(false);
  Settings settings;
  settings.format = OutputFormat::Perfetto;
  const auto action = static_cast<PrintfProgram::Action>(state.range(0));
  consume_records(state, PrintfProgram(action), settings, target);
}
BENCHMARK(records_to_perfetto)->ArgName("trace")->Arg(0)->Arg(1);

void records_as_trees(benchmark::State& state) {
  const Target target(false);
  const PrintfProgram program;
  const dif::TraceData records = fired_records();
  Settings settings;
  settings.format = OutputFormat::Json;
  Sink sink(target.fd());
  const ProgramView* const view = &program;
  auto output = Output::create({&view, 1}, settings, sink, std::make_unique<NoWriter>());
  CHECK(output.has_value());
  for (auto _ : state) output->consume(records);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kRecords));
}
BENCHMARK(records_as_trees);

void plain_fprintf(benchmark::State& state) {
  const Target target(state.range(0) != 0);
  std::FILE* const file = ::fdopen(::dup(target.fd()), "w");
  CHECK(file != nullptr);
  for (auto _ : state) {
    for (std::size_t i = 0; i < kRecords; ++i) {
      std::fprintf(file, "%s %d %lx\n", "workload", static_cast<int>(1000 + i),
                   0xffff'8880'0000'0000UL + i * 64);
    }
    std::fflush(file);
  }
  std::fclose(file);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kRecords));
}
BENCHMARK(plain_fprintf)->ArgName("pipe")->Arg(0)->Arg(1)->UseRealTime();

}  // namespace
}  // namespace ringside::cli

BENCHMARK_MAIN();
