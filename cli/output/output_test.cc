#include "cli/output/output.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "cli/messages/messages.h"
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

TEST_F(OutputTest, AReturnTakesAwayAllDownToItsEntry) {
  settings_.flow_indent = settings_.testing = true;
  const auto outer = program_.add({"fbt", "vmlinux", "ksys_read", "entry"}, {});
  const auto outer_end = program_.add({"fbt", "vmlinux", "ksys_read", "return"}, {});
  const auto half = program_.add({"fbt", "vmlinux", "rw_verify_area", "entry"}, {});
  const auto other_half =
      program_.add({"fbt", "vmlinux", "apparmor_file_permission", "return"}, {});

  for (int call = 0; call < 3; ++call) {
    fire(outer);
    fire(half);
    fire(other_half);
    fire(outer_end);
  }

  const std::string one =
      " -> ksys_read                             \n"
      "   -> rw_verify_area                      \n"
      "     <- apparmor_file_permission          \n"
      " <- ksys_read                             \n";
  EXPECT_EQ(text(), "FUNCTION                                 \n" + one + one + one);
}

TEST_F(OutputTest, FunctionsOfOneNameInTwoModulesAreTwo) {
  settings_.flow_indent = settings_.testing = true;
  const auto outer = program_.add({"fbt", "a", "open", "entry"}, {});
  const auto inner = program_.add({"fbt", "b", "open", "entry"}, {});
  const auto outer_end = program_.add({"fbt", "a", "open", "return"}, {});

  fire(outer);
  fire(inner);
  fire(outer_end);

  EXPECT_TRUE(text().ends_with("\n <- open                                  \n")) << text();
}

TEST_F(OutputTest, EntriesWithoutReturnsIndentUpToABound) {
  settings_.flow_indent = settings_.testing = true;
  const auto entry = program_.add({"fbt", "vmlinux", "f", "entry"}, {});
  const auto leave = program_.add({"fbt", "vmlinux", "f", "return"}, {});

  for (int n = 0; n < 120; ++n) fire(entry);
  for (int n = 0; n < 120; ++n) fire(leave);

  EXPECT_NE(text().find("\n" + std::string(200, ' ') + " -> f"), std::string::npos);
  EXPECT_TRUE(text().ends_with("\n <- f                                     \n"));
}

TEST_F(OutputTest, AggregationsNeverPrintedComeAtTheEnd) {
  program_.aggregation(dif::AggregateFunction::Count);
  dif::TraceData trace_data;
  trace_data.aggregates = {entry(0, "cat", 12), entry(0, "bash", 3)};

  output().consume(trace_data);
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
  dif::TraceData trace_data;
  trace_data.aggregates = {entry(0, "cat", 12)};
  output().consume(trace_data);

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
  dif::TraceData trace_data;
  trace_data.aggregates = {entry(count, "cat", 2), entry(sum, "cat", 512), entry(count, "ls", 1)};
  output().consume(trace_data);

  fire(end);

  EXPECT_EQ(text(), "ls: 1 calls, 0 bytes\ncat: 2 calls, 512 bytes\n");
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
  dif::TraceData trace_data;
  for (const auto ecb : {first, second, third, fourth})
    trace_data.records.push_back({ecb, 0, 0, {}});

  output().consume(trace_data);

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
  dif::TraceData trace_data;
  trace_data.aggregates = {entry(count, "cat", 2)};

  output().consume(trace_data);
  output().finish();

  EXPECT_EQ(text(), "\n\n  cat                                                               2\n");
}

TEST_F(OutputTest, OptionOPrintsAggregationsOnceMore) {
  settings_.quiet = settings_.print_all_aggregations = true;
  const auto count = program_.aggregation(dif::AggregateFunction::Count);
  Action printa = on_aggregation(ActionKind::Printa, count);
  printa.format = "%s=%@d\n";
  const auto tick = program_.add({"profile", "", "", "tick-1s"}, {printa});
  dif::TraceData trace_data;
  trace_data.aggregates = {entry(count, "cat", 2)};
  output().consume(trace_data);

  fire(tick);
  output().finish();

  EXPECT_EQ(text(),
            "cat=2\n\n  cat                                                               2\n");
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
  dif::TraceData trace_data;
  trace_data.faults = {{ecb, 0, 0, 2, {FaultKind::BadAddress, 12, 0x10}},
                       {ecb, 0, 0, 0, {FaultKind::DivideByZero, 4, 0}},
                       {ecb, 0, 0, 1, {FaultKind::NoScratch, dif::kNoPc, 0}}};

  output().consume(trace_data);

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
  dif::TraceData trace_data;
  trace_data.drops.resize(2);
  trace_data.drops[1][static_cast<std::size_t>(dif::DropKind::Principal)] = 1;
  trace_data.drops[0][static_cast<std::size_t>(dif::DropKind::Dynamic)] = 2;
  trace_data.drops[1][static_cast<std::size_t>(dif::DropKind::Dynamic)] = 3;

  output().consume(trace_data);
  output().consume(trace_data);

  EXPECT_EQ(output().take_drops(),
            (std::vector<std::string>{"2 drops on CPU 1", "10 dynamic variable drops"}));
  EXPECT_TRUE(output().take_drops().empty());
}

TEST_F(OutputTest, DropsAreToldByClauseAndLostOrdersByWhatTheyWere) {
  program_.add({"profile", "", "", "tick-1"}, {action(ActionKind::Trace)});
  program_.add({"profile", "", "", "tick-2"},
               {on_aggregation(ActionKind::Printa, 0), on_aggregation(ActionKind::Clear, 0)});
  program_.add({"profile", "", "", "tick-3"}, {action(ActionKind::Exit)});
  for (int i = 0; i < 3; ++i) {
    dif::Clause& clause = program_.mutable_program().clauses[static_cast<std::size_t>(i)];
    clause.line = i + 1;
    clause.probes = {{"profile", "", "", "tick-" + std::to_string(i + 1)}};
  }
  dif::TraceData trace_data;
  trace_data.drops.resize(1);
  trace_data.drops[0][0] = 7;
  for (const std::uint32_t clause : {0u, 1u, 2u, 77u}) {
    trace_data.clause_drops.push_back({0, dif::DropKind::Principal, clause, clause + 1});
  }

  output().consume(trace_data);
  output().consume(trace_data);

  EXPECT_EQ(output().take_drops(),
            (std::vector<std::string>{"14 drops on CPU 0",
                                      "4 of these are of line 2 (profile:::tick-2): printa(), "
                                      "clear() was not done"}));
  EXPECT_EQ(output().take_drops(), std::vector<std::string>{});
  EXPECT_EQ(output().drops_by_clause(0),
            (std::vector<std::string>{"2 drops of line 1 (profile:::tick-1)",
                                      "4 drops of line 2 (profile:::tick-2)",
                                      "6 drops of line 3 (profile:::tick-3)"}));
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

/// trace(1); printf("%s %s", a->b, json(text, "x")) at lines 3 and 4.
dif::Clause clause_with_sources() {
  dif::Difo first, second;
  first.source.parts = {{0, 4, "a", ""}, {2, 4, "a->b", ""}};
  second.source.parts = {{0, 4, "json(text, \"x\")", "json() found no \"x\""}};
  Action traced = action(ActionKind::Trace), printed = action(ActionKind::Printf);
  traced.source.parts = {{0, 3, "trace(1)", ""}};
  printed.arguments = {first, second};
  dif::Clause clause;
  clause.actions = {traced, printed};
  return clause;
}

std::string cause(std::uint32_t action, Fault fault) {
  dif::FaultReport report;
  report.action = action;
  report.fault = fault;
  return fault_cause(
      report, {}, clause_with_sources(), [](int line) { return fmt::format("a.d:{}", line); }, 64);
}

TEST(FaultCause, IsThePartOfTheSourceThatFailed) {
  EXPECT_EQ(cause(1, {FaultKind::IllegalOperation, dif::kNoPc, 0}), ": a.d:3: trace(1)");
  EXPECT_EQ(cause(2, {FaultKind::BadAlignment, 4, 1}), ": a.d:4: a") << "the second instruction";
  EXPECT_EQ(cause(2, {FaultKind::BadAlignment, 12, 1}), ": a.d:4: a->b");
  EXPECT_EQ(cause(0, {FaultKind::DivideByZero, 0, 0}), "") << "it has no predicate";
  EXPECT_EQ(cause(9, {FaultKind::DivideByZero, 0, 0}), "") << "nor so many actions";
}

TEST(FaultCause, SaysWhatIsKnownOfTheReason) {
  EXPECT_EQ(cause(3, {FaultKind::BadAddress, dif::kNoPc, 0}),
            ": a.d:4: json() found no \"x\" (text is cut at strsize=64): json(text, \"x\")");
  EXPECT_EQ(cause(2, {FaultKind::BadAddress, 8, 16}), ": a.d:4: a null pointer: a->b");
  EXPECT_EQ(cause(2, {FaultKind::BadAddress, 8, 0x7ffd00001000}),
            ": a.d:4: an address of user memory, which copyinstr() and copyin() read: a->b");
  EXPECT_EQ(cause(2, {FaultKind::BadAddress, 8, 0xffff888000000000}), ": a.d:4: a->b");
  EXPECT_EQ(cause(2, {FaultKind::NoScratch, 8, 0}),
            ": a.d:4: -x scratchsize=SIZE gives more: a->b");
}

}  // namespace
}  // namespace ringside::cli
