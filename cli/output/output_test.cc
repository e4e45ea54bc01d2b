#include "cli/output/output.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>

#include "cli/messages.h"
#include "cli/output/fake_program_for_tests.h"

namespace ringside::cli {
namespace {

using namespace testing_support;

using OutputTest = OutputFixture;

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
            "  0  => read                                  \n"
            "  0    -> vfs_read                            \n"
            "  0     | :tick-1s                            \n"
            "  0    <- vfs_read                            \n");
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

TEST_F(OutputTest, SetoptTakesEffectInTheRecordThatCallsIt) {
  Action setopt = action(ActionKind::Setopt);
  setopt.format = "quiet";
  const auto begin = program_.add({"dtrace", "", "", "BEGIN"}, {setopt});

  fire(begin);
  fire(begin);

  EXPECT_EQ(text(),
            "CPU     ID                    FUNCTION:NAME\n"
            "  0      1                           :BEGIN ");
}

TEST_F(OutputTest, SetoptTakesANameAndAValueThatWereComputed) {
  settings_.quiet = true;
  Action setopt = action(ActionKind::Setopt);
  const ValueType text8{ValueKind::String, false, 8};
  const auto both = program_.add({"dtrace", "", "", "BEGIN"}, {setopt},
                                 {{0, 0, 0, 8, text8}, {0, 1, 8, 8, text8}});
  setopt.format = "strange\n";
  const auto value = program_.add({"dtrace", "", "", "BEGIN"}, {setopt}, {{0, 0, 0, 8, text8}});

  fire(both, std::array<char, 8>{"quiet"}, std::array<char, 8>{"off"});
  fire(value, std::array<char, 8>{"12345678"[0]});

  EXPECT_FALSE(settings_.quiet);
  const auto messages = output().take_messages();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_TRUE(messages[0].starts_with("couldn't set option \"strange\\n\" to \"1\": "))
      << messages[0];
}

TEST_F(OutputTest, ARowThatPrintEndsHasNoSecondNewline) {
  const auto begin =
      program_.add({"dtrace", "", "", "BEGIN"}, {action(ActionKind::Print)}, {{0, 0, 0, 4, kInt}});

  fire(begin, 1);
  fire(begin, 2);

  EXPECT_EQ(text(),
            "CPU     ID                    FUNCTION:NAME\n"
            "  0      1                           :BEGIN int32_t 0x1\n"
            "  0      1                           :BEGIN int32_t 0x2\n");
}

TEST_F(OutputTest, TestingDropsTheColumnsThatVary) {
  settings_.testing = true;
  const auto begin =
      program_.add({"dtrace", "", "", "BEGIN"}, {action(ActionKind::Trace)}, {{0, 0, 0, 4, kInt}});

  fire(begin, 1);

  EXPECT_EQ(text(),
            "                   FUNCTION:NAME\n"
            "                          :BEGIN         1\n");
}

TEST_F(OutputTest, SeveralClausesOfACallMakeOneArrow) {
  settings_.flow_indent = true;
  const dif::ProbeDescription entry_probe{"fbt", "vmlinux", "f", "entry"};
  const dif::ProbeDescription return_probe{"fbt", "vmlinux", "f", "return"};
  const auto first = program_.add(entry_probe, {});
  const auto second = program_.add(entry_probe, {});
  const auto third = program_.add(return_probe, {});
  const auto fourth = program_.add(return_probe, {});
  program_.share_probe(second, first);
  program_.share_probe(fourth, third);
  dif::Harvest harvest;
  for (const auto ecb : {first, second, third, fourth}) harvest.records.push_back({ecb, 0, 0, {}});

  output().consume(harvest);

  EXPECT_EQ(text(),
            "CPU FUNCTION                                 \n"
            "  0  -> f                                     \n"
            "  0   | f:entry                               \n"
            "  0   | f:return                              \n"
            "  0  <- f                                     \n");
}

TEST_F(OutputTest, FlowIndentKeepsItsColumnsWhenQuiet) {
  settings_.flow_indent = settings_.quiet = true;
  const auto ecb = program_.add({"profile", "", "", "tick-1s"}, {});

  fire(ecb);

  EXPECT_EQ(text(),
            "CPU FUNCTION                                 \n"
            "  0 | :tick-1s                                ");
}

TEST_F(OutputTest, TracememPrintsWhatTheDynamicSizeAllows) {
  settings_.quiet = true;
  const ValueType bytes{ValueKind::Bytes, false, 8}, size{ValueKind::Integer, false, 8};
  const auto ecb = program_.add({"dtrace", "", "", "BEGIN"}, {action(ActionKind::TracememDynamic)},
                                {{0, 0, 0, 8, bytes}, {0, 1, 8, 8, size}});

  fire(ecb, std::uint64_t{0x6867666564636261}, std::uint64_t{2});
  fire(ecb, std::uint64_t{0x6867666564636261}, std::int64_t{-1});

  const std::string head =
      "\n             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  "
      "0123456789abcdef\n         0: ";
  EXPECT_EQ(text(), head + "61 62" + std::string(44, ' ') + "ab\n" + head +
                        "61 62 63 64 65 66 67 68" + std::string(26, ' ') + "abcdefgh\n");
}

TEST_F(OutputTest, PrintShowsTypeAndValueOnALineOfItsOwn) {
  settings_.quiet = true;
  const auto ecb =
      program_.add({"dtrace", "", "", "BEGIN"}, {action(ActionKind::Print)}, {{0, 0, 0, 4, kInt}});

  fire(ecb, 26);

  EXPECT_EQ(text(), "int32_t 0x1a\n");
}

TEST_F(OutputTest, PrintaOfNothingLeavesTheAggregationForTheEnd) {
  settings_.quiet = true;
  const auto count = program_.aggregation(dif::AggregateFunction::Count);
  const auto tick =
      program_.add({"profile", "", "", "tick-1s"}, {on_aggregation(ActionKind::Printa, count)});
  fire(tick);
  dif::Harvest harvest;
  harvest.aggregates = {entry(count, "cat", 2)};

  output().consume(harvest);
  output().finish();

  EXPECT_EQ(text(), "\n\n  cat                                                               2\n");
}

TEST_F(OutputTest, OptionOPrintsAggregationsOnceMore) {
  settings_.quiet = settings_.print_all_aggregations = true;
  const auto count = program_.aggregation(dif::AggregateFunction::Count);
  Action printa = on_aggregation(ActionKind::Printa, count);
  printa.format = "%s=%@d\n";
  const auto tick = program_.add({"profile", "", "", "tick-1s"}, {printa});
  dif::Harvest harvest;
  harvest.aggregates = {entry(count, "cat", 2)};
  output().consume(harvest);

  fire(tick);
  output().finish();

  EXPECT_EQ(text(),
            "cat=2\n\n  cat                                                               2\n");
}

TEST_F(OutputTest, FreopenSendsWhatFollowsToAFile) {
  settings_.quiet = true;
  char path[] = "/tmp/ringside-output-XXXXXX";
  const int file = mkstemp(path);
  ASSERT_GE(file, 0);
  Action to_file = action(ActionKind::Freopen), back = action(ActionKind::Freopen);
  to_file.format = path;
  Action before = action(ActionKind::Printf), inside = before, after = before;
  before.format = "before ";
  inside.format = "inside\n";
  after.format = "after\n";
  const auto ecb =
      program_.add({"dtrace", "", "", "BEGIN"}, {before, to_file, inside, back, after});

  fire(ecb);

  EXPECT_EQ(text(), "before after\n");
  char written[64];
  EXPECT_EQ(std::string(written, static_cast<std::size_t>(read(file, written, sizeof written))),
            "inside\n");
  close(file);
  unlink(path);
}

TEST_F(OutputTest, SnapshotWritesTheFileThatItsFormatNames) {
  Action snapshot = action(ActionKind::Snapshot);
  snapshot.format = "/tmp/%d.core";
  const auto ecb = program_.add({"dtrace", "", "", "BEGIN"}, {snapshot}, {{0, 0, 0, 4, kInt}});

  fire(ecb, 7);
  fire(ecb, 8);

  EXPECT_EQ(program_.snapshots, (std::vector<std::string>{"/tmp/7.core", "/tmp/8.core"}));
  EXPECT_EQ(output().take_messages(),
            (std::vector<std::string>{"/tmp/7.core: all of it",
                                      "snapshot(): /tmp/8.core is there already"}));
}

TEST_F(OutputTest, FreopenThatFailsIsAMessage) {
  settings_.quiet = true;
  Action to_file = action(ActionKind::Freopen);
  to_file.format = "/nonexistent/x";
  const auto ecb = program_.add({"dtrace", "", "", "BEGIN"}, {to_file});

  fire(ecb);

  EXPECT_EQ(output().take_messages(),
            std::vector<std::string>{
                "freopen(): cannot write to /nonexistent/x: No such file or directory"});
}

TEST_F(OutputTest, FtruncateEmptiesTheFile) {
  settings_.quiet = true;
  char path[] = "/tmp/ringside-output-XXXXXX";
  const int file = mkstemp(path);
  ASSERT_GE(file, 0);
  Action to_file = action(ActionKind::Freopen), printf = action(ActionKind::Printf);
  to_file.format = path;
  printf.format = "x";
  const auto ecb = program_.add({"dtrace", "", "", "BEGIN"},
                                {to_file, printf, action(ActionKind::Ftruncate), printf});

  fire(ecb);
  sink_.flush();

  char written[8];
  EXPECT_EQ(read(file, written, sizeof written), 1);
  close(file);
  unlink(path);
}

TEST_F(OutputTest, SystemRunsInRecordOrder) {
  settings_.quiet = true;
  char path[] = "/tmp/ringside-output-XXXXXX";
  const int file = mkstemp(path);
  ASSERT_GE(file, 0);
  Action to_file = action(ActionKind::Freopen), one = action(ActionKind::Printf);
  Action run = action(ActionKind::System), three = one;
  to_file.format = path;
  one.format = "one\n";
  run.format = "echo %s";
  three.format = "three\n";
  const auto ecb = program_.add({"dtrace", "", "", "BEGIN"}, {to_file, one, run, three},
                                {{2, 0, 0, 4, {ValueKind::Bytes, false, 4}}});

  fire(ecb, std::array<char, 4>{'t', 'w', 'o', '\0'});
  sink_.flush();

  char written[64];
  EXPECT_EQ(std::string(written, static_cast<std::size_t>(read(file, written, sizeof written))),
            "one\ntwo\nthree\n");
  close(file);
  unlink(path);
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

TEST_F(OutputTest, BadFormatsAreRefusedBeforeTracing) {
  Action printf = action(ActionKind::Printf);
  printf.format = "%";
  program_.add({"dtrace", "", "", "BEGIN"}, {printf});

  const auto created = Output::create(program_, settings_, sink_);

  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().message, "line 0: format ends within a conversion");
}

/// Two machines' programs over one output.
class SeveralTargets : public OutputFixture {
 protected:
  SeveralTargets() {
    for (FakeProgram* each : {&program_, &other_}) {
      each->add({"fbt", "vmlinux", "f", "entry"}, {trace()}, {field()});
      each->add({"profile", "", "", "tick-1s"}, {on_aggregation(ActionKind::Printa, 0)});
      each->aggregation(dif::AggregateFunction::Sum);
    }
    program_.name = "web";
    other_.name = "database";
  }
  static Action trace() { return action(ActionKind::Trace); }
  static dif::RecordField field() {
    dif::RecordField field;
    field.size = 4;
    field.type = kInt;
    return field;
  }
  Output& several() {
    const std::array<const ProgramView*, 2> views{&program_, &other_};
    output_.emplace(*Output::create(views, settings_, sink_));
    return *output_;
  }
  /// Firings of the probe `ecb`, at these times, each recording its time.
  dif::Harvest fired(std::uint32_t ecb, std::vector<std::uint64_t> times) {
    dif::Harvest harvest;
    for (const std::uint64_t time : times) {
      auto& bytes = bytes_.emplace_back(4);
      bytes[0] = static_cast<std::byte>(time);
      harvest.records.push_back({dif::EcbId{ecb}, 0, time, bytes});
    }
    return harvest;
  }
  static dif::Harvest added(std::int64_t value) {
    dif::Harvest harvest;
    harvest.aggregates = {entry(0, "key", value)};
    return harvest;
  }

  FakeProgram other_;
  std::deque<std::vector<std::byte>> bytes_;
};

TEST_F(SeveralTargets, RowsNameTheMachineAndComeInTheOrderOfTheirFiring) {
  Output& output = several();

  output.add(0, fired(1, {10, 30}));
  output.add(1, fired(1, {20, 40}));
  output.print_until(100);

  EXPECT_EQ(text(),
            "MACHINE  CPU     ID                    FUNCTION:NAME\n"
            "web        0      1                          f:entry        10\n"
            "database   0      1                          f:entry        20\n"
            "web        0      1                          f:entry        30\n"
            "database   0      1                          f:entry        40\n");
}

TEST_F(SeveralTargets, WhatAnotherTargetMayStillComeBeforeWaits) {
  settings_.quiet = true;
  Output& output = several();

  output.add(0, fired(1, {10, 50}));
  output.add(1, fired(1, {20}));
  output.print_until(30);
  const std::string before = text();
  output.add(1, fired(1, {40}));
  output.print_until(60);

  EXPECT_EQ(before, "1020");
  EXPECT_EQ(text(), "4050");
}

TEST_F(SeveralTargets, HaveAggregationsOfTheirOwn) {
  Output& output = several();
  output.add(0, added(3));
  output.add(1, added(4));

  output.finish();

  const std::string all = text();
  const auto row = [](std::string_view value) { return fmt::format("  key{:>64}\n", value); };
  EXPECT_EQ(all, "\nweb:\n" + row("3") + "database:\n" + row("4"));
}

TEST_F(SeveralTargets, AggmergeMakesOneOfThem) {
  settings_.merge_aggregations = true;
  Output& output = several();
  output.add(0, added(3));
  output.add(1, added(4));

  output.finish();

  EXPECT_EQ(text(), fmt::format("\n  key{:>64}\n", 7));
}

TEST_F(SeveralTargets, WhatATickDoesToAMergedAggregationIsDoneOnce) {
  settings_.merge_aggregations = settings_.quiet = true;
  Output& output = several();
  output.add(0, added(3));
  output.add(1, fired(2, {10}));
  output.add(0, fired(2, {11}));
  output.print_until(20);
  const std::string first = text();
  output.leave(0);
  output.add(1, fired(2, {30}));
  output.print_until(40);

  EXPECT_EQ(first, fmt::format("\n  key{:>64}\n", 3));
  EXPECT_EQ(text(), first) << "the first target is gone, so the second prints it";
}

TEST_F(SeveralTargets, AddressesAreNotMerged) {
  settings_.merge_aggregations = settings_.quiet = true;
  for (FakeProgram* each : {&program_, &other_}) {
    each->mutable_program().aggregations[0].keys = {{ValueKind::KernelSymbol, false, 8}};
  }
  Output& output = several();
  for (std::size_t i : {0, 1}) {
    dif::Harvest harvest = added(1);
    harvest.aggregates[0].key.resize(8);
    output.add(i, std::move(harvest));
  }

  output.finish();

  const std::string all = text();
  EXPECT_NE(all.find("web:\n"), std::string::npos) << all;
  EXPECT_NE(all.find("database:\n"), std::string::npos) << all;
}

TEST_F(SeveralTargets, AggregationsThatDifferCannotBeMerged) {
  settings_.merge_aggregations = true;
  other_.mutable_program().aggregations[0].function = dif::AggregateFunction::Count;
  const std::array<const ProgramView*, 2> views{&program_, &other_};

  const auto output = Output::create(views, settings_, sink_);

  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().message,
            "aggmerge: the aggregations on web and database differ in their keys or parameters; "
            "leave the option away");
}

TEST_F(SeveralTargets, DropsAndFaultsNameTheMachine) {
  Output& output = several();
  dif::Harvest harvest;
  harvest.drops.resize(1);
  harvest.drops[0][0] = 2;
  dif::FaultReport fault;
  fault.ecb.value = 1;
  fault.fault.kind = FaultKind::DivideByZero;
  harvest.faults = {fault};
  output.add(1, std::move(harvest));

  EXPECT_EQ(output.take_drops(), std::vector<std::string>{"database: 2 drops on CPU 0"});
  EXPECT_EQ(output.take_messages().at(0).substr(0, 36), "database: error on enabled probe ID ");
}

TEST_F(SeveralTargets, DocumentsNameTheMachineOfEachRecord) {
  settings_.format = OutputFormat::JsonLines;
  Output& output = several();
  output.add(0, fired(1, {10}));
  output.add(1, fired(1, {5}));
  output.add(1, added(4));
  output.print_until(20);
  output.finish();

  const std::string lines = text();
  const auto second = lines.find("\"machine\":\"web\"");
  ASSERT_NE(second, std::string::npos) << lines;
  EXPECT_LT(lines.find("\"machine\":\"database\""), second) << lines;
  EXPECT_NE(lines.find("\"machine\":\"database\"", second), std::string::npos) << "its aggregation";
}

}  // namespace
}  // namespace ringside::cli
