#include "dif/engine/speculations.h"

#include <gtest/gtest.h>

#include "dif/testing/fire_fixture.h"

namespace ringside::dif {
namespace {

using namespace testing;

/// An object that calls speculation().
Difo speculation() {
  return difo({encode_indexed(Opcode::Call, static_cast<unsigned>(Subroutine::Speculation), 1),
               encode_return(1)});
}

class SpeculationTest : public FireFixture {
 protected:
  /// Starts with these probes: kBegin takes a speculation and traces its id; probe 10 speculates a
  /// trace of arg1 in speculation arg0; 11 commits arg0, 12 discards it.
  void start_speculating(EngineOptions options = {}, unsigned vcpus = 2) {
    const Difo id = builtin(Builtin::Arg0), value = builtin(Builtin::Arg1);
    start(program({trace(speculation()),
                   clause({action(ActionKind::Speculate, {id}), action(ActionKind::Trace, {value}),
                           assign(Opcode::Stgs, VariableScope::Global, 1)}),
                   clause({action(ActionKind::Commit, {id})}),
                   clause({action(ActionKind::Discard, {id})}), trace(constant(99)),
                   trace(load_variable(Opcode::Ldgs, VariableScope::Global))}),
          {kBegin, kSpeculate, kCommit, kDiscard, kEnd, kProbe}, options, vcpus);
  }
  void on(ProbeId probe, std::uint64_t id, std::uint64_t value = 0, std::uint32_t vcpu = 0,
          std::uint64_t timestamp = 1) {
    guest_.arguments[0] = id;
    guest_.arguments[1] = value;
    fire(probe, timestamp, vcpu);
  }
  static constexpr ProbeId kSpeculate{10}, kCommit{11}, kDiscard{12};
};

TEST_F(SpeculationTest, ACommittedRecordComesWithItsFiringsTimestamp) {
  start_speculating();
  fire(kBegin, 1);
  on(kSpeculate, 1, 7, 0, 2);
  EXPECT_EQ(numbers(engine_->take_quiescent()), (std::vector<std::int64_t>{1})) << "the id";
  on(kCommit, 1, 0, 0, 9);

  const TraceData trace_data = engine_->take_quiescent();

  ASSERT_EQ(numbers(trace_data), (std::vector<std::int64_t>{7}));
  EXPECT_EQ(trace_data.records[0].timestamp, 2u);
}

TEST_F(SpeculationTest, ADiscardedOneLeavesNothingAndIsFreeAgain) {
  start_speculating();
  fire(kBegin);
  on(kSpeculate, 1, 7);
  on(kDiscard, 1);
  on(kCommit, 1);
  fire(kBegin);
  on(kCommit, 1);

  EXPECT_EQ(numbers(engine_->take_quiescent()), (std::vector<std::int64_t>{1, 1}));
}

TEST_F(SpeculationTest, IdsThatNameNoneActiveDoNothingAndEndTheClause) {
  start_speculating();
  on(kSpeculate, ~0ull, 7);
  for (const std::uint64_t id : {0ull, 1ull}) {
    on(kSpeculate, id, 7);
    on(kCommit, id);
    on(kDiscard, id);
  }
  fire(kProbe);

  const TraceData trace_data = engine_->take_quiescent();

  EXPECT_EQ(numbers(trace_data), (std::vector<std::int64_t>{0})) << "the assignment did not run";
  EXPECT_EQ(drops(trace_data, DropKind::Principal), 0u);
  EXPECT_EQ(drops(trace_data, DropKind::Speculation), 0u);
  EXPECT_TRUE(trace_data.faults.empty());
}

TEST_F(SpeculationTest, ToEndOneThatCannotBeIsAnIllegalOperation) {
  start_speculating();
  for (const std::uint64_t id : {2ull, ~0ull}) {
    on(kCommit, id);
    on(kDiscard, id);
  }

  const TraceData trace_data = engine_->take_quiescent();

  ASSERT_EQ(trace_data.faults.size(), 4u);
  EXPECT_EQ(trace_data.faults[0].fault.kind, FaultKind::IllegalOperation);
}

TEST_F(SpeculationTest, WhenAllAreActiveThereIsNoneAvailable) {
  start_speculating({.speculations = 2});
  for (int i = 0; i < 4; ++i) fire(kBegin);

  const TraceData trace_data = engine_->take_quiescent();

  EXPECT_EQ(numbers(trace_data), (std::vector<std::int64_t>{1, 2, 0, 0}));
  EXPECT_EQ(drops(trace_data, DropKind::SpeculationUnavailable), 2u);
}

TEST_F(SpeculationTest, NoneAtAllIsNoneAvailable) {
  start_speculating({.speculations = 0});
  fire(kBegin);

  EXPECT_EQ(drops(engine_->take_quiescent(), DropKind::SpeculationUnavailable), 1u);
}

TEST_F(SpeculationTest, ACommitTakesWhatAllVcpusRecordedInTheOrderOfTime) {
  start_speculating({.speculations = 2}, 3);
  fire(kBegin, 1);
  fire(kBegin, 1);
  on(kSpeculate, 1, 11, 2, 2);
  on(kSpeculate, 2, 21, 0, 3);
  on(kSpeculate, 1, 12, 0, 4);
  on(kSpeculate, 2, 22, 1, 5);
  on(kSpeculate, 1, 13, 1, 6);
  on(kSpeculate, 1, 14, 2, 7);
  on(kCommit, 1, 0, 1, 8);
  on(kSpeculate, 2, 23, 2, 9);
  on(kCommit, 2, 0, 0, 10);

  const TraceData trace_data = engine_->take_quiescent();

  EXPECT_EQ(numbers(trace_data), (std::vector<std::int64_t>{1, 2, 11, 12, 13, 14, 21, 22, 23}));
  std::vector<std::uint32_t> vcpus;
  for (const Record& record : trace_data.records) vcpus.push_back(record.vcpu);
  EXPECT_EQ(vcpus, (std::vector<std::uint32_t>{0, 0, 2, 0, 1, 2, 0, 1, 2}));
}

TEST_F(SpeculationTest, NoRecordOfAnotherVcpuStandsAmongThoseOfACommit) {
  start_speculating();
  fire(kBegin, 1);
  on(kSpeculate, 1, 7, 0, 2);
  fire(kProbe, 3, 1);
  on(kSpeculate, 1, 8, 1, 4);
  fire(kProbe, 5, 1);
  on(kCommit, 1, 0, 0, 6);
  fire(kProbe, 7, 1);

  EXPECT_EQ(numbers(engine_->take_quiescent()), (std::vector<std::int64_t>{1, 1, 1, 7, 8, 1}));
}

TEST_F(SpeculationTest, OneThatSeveralVcpusEndedIsFreeAtOnce) {
  start_speculating();
  for (const ProbeId end : {kCommit, kDiscard}) {
    fire(kBegin, 1);
    on(kSpeculate, 1, 7, 0, 2);
    on(kSpeculate, 1, 8, 1, 3);
    on(end, 1, 0, 0, 4);
    on(kSpeculate, 1, 9, 0, 5);  // no longer active
    on(kCommit, 1, 0, 1, 6);
  }

  const TraceData trace_data = engine_->take_quiescent();

  EXPECT_EQ(numbers(trace_data), (std::vector<std::int64_t>{1, 7, 8, 1}));
  EXPECT_EQ(drops(trace_data, DropKind::SpeculationUnavailable), 0u);
}

TEST_F(SpeculationTest, WhatAnotherVcpuCommittedIsHandedOver) {
  start_speculating();
  fire(kBegin, 1);
  on(kSpeculate, 1, 8, 1, 3);
  on(kCommit, 1, 0, 0, 4);

  EXPECT_EQ(numbers(engine_->take_quiescent()), (std::vector<std::int64_t>{1, 8}));
  EXPECT_TRUE(engine_->take_quiescent().records.empty()) << "once";
}

TEST_F(SpeculationTest, WhatWasCommittedComesBeforeEnd) {
  start_speculating();
  fire(kBegin, 1);
  on(kSpeculate, 1, 8, 1, 3);
  on(kCommit, 1, 0, 0, 4);
  fire(kEnd, 5);

  EXPECT_EQ(numbers(engine_->take_quiescent()), (std::vector<std::int64_t>{1, 8, 99}));
}

TEST_F(SpeculationTest, AFullBufferDropsTheRecordAndKeepsTheOthers) {
  start_speculating({.speculation_size = 2 * 24 + 23});  // a record of 8 bytes occupies 24
  fire(kBegin);
  for (std::uint64_t i = 1; i <= 5; ++i) on(kSpeculate, 1, i);
  on(kCommit, 1);

  const TraceData trace_data = engine_->take_quiescent();

  EXPECT_EQ(numbers(trace_data), (std::vector<std::int64_t>{1, 1, 2}));
  EXPECT_EQ(drops(trace_data, DropKind::Speculation), 3u);
  EXPECT_EQ(drops(trace_data, DropKind::Principal), 0u);
}

TEST_F(SpeculationTest, ACommitThatDoesNotFitIsOneDropAndCopiesNothing) {
  start_speculating({.buffer_size = 3 * 24});
  fire(kBegin);
  for (std::uint64_t i = 1; i <= 3; ++i) on(kSpeculate, 1, i);
  on(kCommit, 1);

  const TraceData trace_data = engine_->take_quiescent();

  EXPECT_EQ(numbers(trace_data), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(drops(trace_data, DropKind::Principal), 1u);
}

TEST_F(SpeculationTest, SpeculateAloneRecordsTheFiring) {
  start(program({trace(speculation()), clause({action(ActionKind::Speculate, {constant(1)})}),
                 clause({action(ActionKind::Commit, {constant(1)})})}),
        {kBegin, kProbe, kSpeculate});
  fire(kBegin);
  fire(kProbe, 3);
  fire(kSpeculate);

  const TraceData trace_data = engine_->take_quiescent();

  ASSERT_EQ(trace_data.records.size(), 2u);
  EXPECT_EQ(trace_data.records[1].ecb, EcbId{2});
  EXPECT_TRUE(trace_data.records[1].data.empty());
}

TEST_F(SpeculationTest, AClauseThatEndsItsOwnSpeculationLeavesNothingForTheNextOne) {
  const Difo one = constant(1), value = builtin(Builtin::Arg1);
  for (const ActionKind end : {ActionKind::Commit, ActionKind::Discard}) {
    const Action choose = action(ActionKind::Speculate, {one});
    start(program({trace(speculation()),
                   clause({choose, action(end, {one}), action(ActionKind::Trace, {value})}),
                   clause({choose, action(ActionKind::Trace, {value})}),
                   clause({action(ActionKind::Commit, {one})})}),
          {kBegin, kProbe, kSpeculate, kCommit});
    fire(kBegin);
    on(kProbe, 0, 5);
    fire(kBegin);
    on(kSpeculate, 0, 7);
    on(kCommit, 0);

    EXPECT_EQ(numbers(engine_->take_quiescent()), (std::vector<std::int64_t>{1, 1, 7}));
  }
}

TEST_F(SpeculationTest, AFaultKeepsTheRecordOutOfTheSpeculation) {
  start(program({trace(speculation()),
                 clause({action(ActionKind::Speculate, {constant(1)}),
                         action(ActionKind::Trace, {load_from(kUnmapped)})}),
                 clause({action(ActionKind::Commit, {constant(1)})})}),
        {kBegin, kProbe, kSpeculate});
  fire(kBegin);
  fire(kProbe);
  fire(kSpeculate);

  const TraceData trace_data = engine_->take_quiescent();

  EXPECT_EQ(trace_data.records.size(), 1u);
  ASSERT_EQ(trace_data.faults.size(), 1u);
  EXPECT_EQ(trace_data.faults[0].action, 2u);
}

TEST_F(SpeculationTest, ARecordBesideACommitComesAfterIt) {
  start(program({trace(speculation()),
                 clause({action(ActionKind::Speculate, {constant(1)}),
                         action(ActionKind::Trace, {constant(7)})}),
                 clause({action(ActionKind::Trace, {constant(8)}),
                         action(ActionKind::Commit, {constant(1)}),
                         action(ActionKind::Exit, {constant(9)})})}),
        {kBegin, kProbe, kSpeculate});
  fire(kBegin);
  fire(kProbe);
  fire(kSpeculate);

  const TraceData trace_data = engine_->take_quiescent();

  ASSERT_EQ(numbers(trace_data), (std::vector<std::int64_t>{1, 7, 8}));
  EXPECT_EQ(number(trace_data.records[2], 1), 9);
  EXPECT_EQ(engine_->exit_status(), 9);
}

}  // namespace
}  // namespace ringside::dif
