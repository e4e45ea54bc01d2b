#include "cli/output.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "cli/messages.h"

namespace ringside::cli {
namespace {

using dif::Action;
using dif::ActionKind;
using dif::ValueKind;
using dif::ValueType;

const ValueType kInt{ValueKind::Integer, true, 4};
const ValueType kString{ValueKind::String, false, 0};

/// A program with one ECB per clause, all on probes that the test names.
class FakeProgram : public ProgramView {
 public:
  const dif::Program& program() const override { return program_; }
  const dif::EcbInfo& ecb(dif::EcbId id) const override { return ecbs_[id.value - 1]; }
  const dif::ProbeDescription& probe_name(dif::ProbeId probe) const override {
    return names_[probe.value - 1];
  }
  std::string describe(GuestVirt) const override { return "vmlinux`f"; }

  /// Adds a clause; returns the id of its ECB. Fields follow one another in the record.
  dif::EcbId add(dif::ProbeDescription name, std::vector<Action> actions,
                 std::vector<dif::RecordField> fields = {}) {
    names_.push_back(std::move(name));
    dif::EcbInfo info;
    info.id.value = static_cast<std::uint32_t>(ecbs_.size()) + 1;
    info.clause = static_cast<std::uint32_t>(program_.clauses.size());
    info.probe.value = static_cast<std::uint32_t>(names_.size());
    info.fields = std::move(fields);
    ecbs_.push_back(info);
    program_.clauses.emplace_back().actions = std::move(actions);
    return info.id;
  }
  std::uint32_t aggregation(dif::AggregateFunction function) {
    dif::Aggregation aggregation;
    aggregation.function = function;
    aggregation.keys = {kString};
    program_.aggregations.push_back(aggregation);
    return static_cast<std::uint32_t>(program_.aggregations.size()) - 1;
  }

 private:
  dif::Program program_;
  std::vector<dif::EcbInfo> ecbs_;
  std::vector<dif::ProbeDescription> names_;
};

Action action(ActionKind kind) {
  Action result;
  result.kind = kind;
  return result;
}

Action on_aggregation(ActionKind kind, std::uint32_t aggregation) {
  Action result = action(kind);
  result.aggregations = {aggregation};
  return result;
}

dif::AggregateEntry entry(std::uint32_t aggregation, std::string_view key, std::int64_t value) {
  dif::AggregateEntry result;
  result.aggregation = aggregation;
  result.key.resize(key.size() + 1);
  std::memcpy(result.key.data(), key.data(), key.size());
  result.words = {value};
  return result;
}

class OutputTest : public testing::Test {
 protected:
  OutputTest() : sink_(open_pipe()) {}
  ~OutputTest() override {
    close(ends_[0]);
    close(ends_[1]);
  }
  int open_pipe() {
    EXPECT_EQ(pipe(ends_), 0);
    return ends_[1];
  }
  Output& output() {
    if (!output_) output_.emplace(*Output::create(program_, settings_, sink_));
    return *output_;
  }
  template <class... T>
  void fire(dif::EcbId ecb, T... values) {
    std::vector<std::byte> data;
    (append(data, values), ...);
    dif::Harvest harvest;
    harvest.records.push_back({ecb, 0, 0, data});
    output().consume(harvest);
  }
  std::string text() {
    sink_.flush();
    char buffer[16384];
    const ssize_t size = read(ends_[0], buffer, sizeof buffer);
    return {buffer, static_cast<std::size_t>(size > 0 ? size : 0)};
  }

  FakeProgram program_;
  Settings settings_;
  int ends_[2] = {-1, -1};
  Sink sink_;
  std::optional<Output> output_;

 private:
  template <class T>
  static void append(std::vector<std::byte>& data, const T& value) {
    data.resize(data.size() + sizeof value);
    std::memcpy(data.data() + data.size() - sizeof value, &value, sizeof value);
  }
};

TEST_F(OutputTest, RowsHaveAHeaderOnceAndTraceColumns) {
  const auto begin =
      program_.add({"dtrace", "", "", "BEGIN"}, {action(ActionKind::Trace)}, {{0, 0, 0, 4, kInt}});

  fire(begin, 1);
  fire(begin, 2);
  output().finish();

  EXPECT_EQ(text(),
            "CPU     ID                    FUNCTION:NAME\n"
            "  0      1                           :BEGIN         1\n"
            "  0      1                           :BEGIN         2\n"
            "\n");
}

TEST_F(OutputTest, QuietPrintsOnlyWhatIsAskedFor) {
  settings_.quiet = true;
  Action printf = action(ActionKind::Printf);
  printf.format = "%d and %d\n";
  const auto ecb = program_.add({"dtrace", "", "", "BEGIN"}, {printf, action(ActionKind::Trace)},
                                {{0, 0, 0, 4, kInt}, {0, 1, 4, 4, kInt}, {1, 0, 8, 4, kInt}});

  fire(ecb, 7, 8, 9);

  EXPECT_EQ(text(), "7 and 8\n9");
}

TEST_F(OutputTest, AClauseWithoutActionsPrintsItsProbe) {
  const auto ecb = program_.add({"syscall", "vmlinux", "read", "entry"}, {});

  fire(ecb);

  EXPECT_EQ(text(),
            "CPU     ID                    FUNCTION:NAME\n"
            "  0      1                       read:entry \n");
}

TEST_F(OutputTest, FlowIndentFollowsCalls) {
  settings_.flow_indent = true;
  const auto outer = program_.add({"syscall", "vmlinux", "read", "entry"}, {});
  const auto inner = program_.add({"fbt", "vmlinux", "vfs_read", "entry"}, {});
  const auto inner_end = program_.add({"fbt", "vmlinux", "vfs_read", "return"}, {});
  const auto tick = program_.add({"profile", "", "", "tick-1s"}, {});

  fire(outer);
  fire(inner);
  fire(tick);
  fire(inner_end);

  EXPECT_EQ(text(),
            "CPU FUNCTION                                 \n"
            "  0 => read                                   \n"
            "  0   -> vfs_read                             \n"
            "  0      | :tick-1s                           \n"
            "  0   <- vfs_read                             \n");
}

TEST_F(OutputTest, AggregationsNeverPrintedComeAtTheEnd) {
  program_.aggregation(dif::AggregateFunction::Count);
  dif::Harvest harvest;
  harvest.aggregates = {entry(0, "cat", 12), entry(0, "bash", 3)};

  output().consume(harvest);
  output().finish();

  EXPECT_EQ(text(),
            "\n"
            "  bash                                                              3\n"
            "  cat                                                              12\n");
}

TEST_F(OutputTest, PrintaPrintsOnceAndForGood) {
  const auto aggregation = program_.aggregation(dif::AggregateFunction::Count);
  const auto tick = program_.add({"profile", "", "", "tick-1s"},
                                 {on_aggregation(ActionKind::Printa, aggregation),
                                  on_aggregation(ActionKind::Clear, aggregation)});
  dif::Harvest harvest;
  harvest.aggregates = {entry(0, "cat", 12)};
  output().consume(harvest);

  fire(tick);
  fire(tick);
  output().finish();

  EXPECT_EQ(text(),
            "CPU     ID                    FUNCTION:NAME\n"
            "  0      1                         :tick-1s \n"
            "  cat                                                              12\n"
            "\n"
            "  0      1                         :tick-1s \n"
            "  cat                                                               0\n"
            "\n"
            "\n");
}

TEST_F(OutputTest, PrintaWithAFormatJoinsAggregations) {
  settings_.quiet = true;
  const auto count = program_.aggregation(dif::AggregateFunction::Count);
  const auto sum = program_.aggregation(dif::AggregateFunction::Sum);
  Action printa = action(ActionKind::Printa);
  printa.format = "%s: %@d calls, %@d bytes\n";
  printa.aggregations = {count, sum};
  const auto end = program_.add({"dtrace", "", "", "END"}, {printa});
  dif::Harvest harvest;
  harvest.aggregates = {entry(count, "cat", 2), entry(sum, "cat", 512), entry(count, "ls", 1)};
  output().consume(harvest);

  fire(end);

  EXPECT_EQ(text(), "ls: 1 calls, 0 bytes\ncat: 2 calls, 512 bytes\n");
}

TEST_F(OutputTest, SetoptTakesEffectFromTheNextRecord) {
  Action setopt = action(ActionKind::Setopt);
  setopt.format = "quiet";
  const auto begin = program_.add({"dtrace", "", "", "BEGIN"}, {setopt});

  fire(begin);
  fire(begin);

  EXPECT_EQ(text(),
            "CPU     ID                    FUNCTION:NAME\n"
            "  0      1                           :BEGIN \n");
}

TEST_F(OutputTest, NormalizeByZeroIsReportedAndIgnored) {
  const auto sum = program_.aggregation(dif::AggregateFunction::Sum);
  const auto end = program_.add({"dtrace", "", "", "END"},
                                {on_aggregation(ActionKind::Normalize, sum)}, {{0, 0, 0, 4, kInt}});

  fire(end, 0);

  EXPECT_EQ(output().take_messages(),
            std::vector<std::string>{"normalize(): the factor is 0, so it was ignored"});
}

TEST_F(OutputTest, FaultsAreReportedInDtracesWords) {
  const auto ecb = program_.add({"fbt", "vmlinux", "vfs_read", "entry"}, {});
  dif::Harvest harvest;
  harvest.faults = {{ecb, 0, 0, 2, {FaultKind::BadAddress, 12, 0x10}},
                    {ecb, 0, 0, 0, {FaultKind::DivideByZero, 4, 0}},
                    {ecb, 0, 0, 1, {FaultKind::NoScratch, dif::kNoPc, 0}}};

  output().consume(harvest);

  EXPECT_EQ(output().take_messages(),
            (std::vector<std::string>{
                "error on enabled probe ID 1 (ID 1: fbt:vmlinux:vfs_read:entry): invalid address "
                "(0x10) in action #2 at DIF offset 12",
                "error on enabled probe ID 1 (ID 1: fbt:vmlinux:vfs_read:entry): divide-by-zero in "
                "predicate at DIF offset 4",
                "error on enabled probe ID 1 (ID 1: fbt:vmlinux:vfs_read:entry): out of scratch "
                "space in action #1"}));
  EXPECT_TRUE(output().take_messages().empty());
}

TEST_F(OutputTest, DropsAreAddedUpUntilTheyAreTaken) {
  dif::Harvest harvest;
  harvest.drops.resize(2);
  harvest.drops[1][static_cast<std::size_t>(dif::DropKind::Principal)] = 1;
  harvest.drops[0][static_cast<std::size_t>(dif::DropKind::Dynamic)] = 2;
  harvest.drops[1][static_cast<std::size_t>(dif::DropKind::Dynamic)] = 3;

  output().consume(harvest);
  output().consume(harvest);

  EXPECT_EQ(output().take_drops(),
            (std::vector<std::string>{"2 drops on CPU 1", "10 dynamic variable drops"}));
  EXPECT_TRUE(output().take_drops().empty());
}

TEST(Drops, HaveOneSingularAndATag) {
  EXPECT_EQ(drop_text(dif::DropKind::Aggregation, 1, 3, false), "1 aggregation drop on CPU 3");
  EXPECT_EQ(drop_text(dif::DropKind::Principal, 2, 0, true),
            "[DTRACEDROP_PRINCIPAL] 2 drops on CPU 0");
  EXPECT_EQ(drop_text(dif::DropKind::DoubleError, 1, 0, false), "1 error in ERROR probe enabling");
}

TEST(SinkTest, AReaderThatWentAwayClosesIt) {
  signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  Sink sink(ends[1]);

  sink.write("x");

  EXPECT_FALSE(sink.flush());
  EXPECT_TRUE(sink.closed());
  EXPECT_EQ(sink.problem(), "");
  close(ends[1]);
}

TEST_F(OutputTest, UnsupportedFormatsAreRefusedBeforeTracing) {
  Action printf = action(ActionKind::Printf);
  printf.format = "%k";
  program_.add({"dtrace", "", "", "BEGIN"}, {printf});

  const auto created = Output::create(program_, settings_, sink_);

  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().message, "line 0: format conversion %k is not supported yet");
}

}  // namespace
}  // namespace ringside::cli
