// The output of one program on several machines.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <deque>

#include "cli/output/fake_program_for_tests.h"
#include "cli/output/output.h"

namespace ringside::cli {
namespace {

using namespace testing_support;

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
  dif::TraceData fired(std::uint32_t ecb, std::vector<std::uint64_t> times) {
    dif::TraceData trace_data;
    for (const std::uint64_t time : times) {
      auto& bytes = bytes_.emplace_back(4);
      bytes[0] = static_cast<std::byte>(time);
      trace_data.records.push_back({dif::EcbId{ecb}, 0, time, bytes});
    }
    return trace_data;
  }
  static dif::TraceData added(std::int64_t value) {
    dif::TraceData trace_data;
    trace_data.aggregates = {entry(0, "key", value)};
    return trace_data;
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
    dif::TraceData trace_data = added(1);
    trace_data.aggregates[0].key.resize(8);
    output.add(i, std::move(trace_data));
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
  dif::TraceData trace_data;
  trace_data.drops.resize(1);
  trace_data.drops[0][0] = 2;
  dif::FaultReport fault;
  fault.ecb.value = 1;
  fault.fault.kind = FaultKind::DivideByZero;
  trace_data.faults = {fault};
  output.add(1, std::move(trace_data));

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
