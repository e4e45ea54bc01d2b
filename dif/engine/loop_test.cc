// Clause::repeat: how often the clauses of a loop run, and what ends one.
#include <gtest/gtest.h>

#include "dif/engine/clause_runner.h"
#include "dif/testing/fire_fixture.h"

namespace ringside::dif {
namespace {

using namespace testing;

constexpr unsigned kI = 0x500, kJ = 0x501, kTotal = 0x502;

Clause repeating(Clause made, std::uint32_t first, std::uint32_t limit) {
  made.repeat = Repeat{first, limit};
  return made;
}
Clause evaluate(Difo object) {
  return clause({action(ActionKind::Evaluate, {std::move(object)})});
}
Clause when(Difo predicate, Clause made) {
  made.predicate = std::move(predicate);
  return made;
}
Clause set_zero(unsigned id) {
  return clause({assign(Opcode::Stgs, VariableScope::Global, 0, id)});
}
Clause trace_global(unsigned id) {
  return trace(load_variable(Opcode::Ldgs, VariableScope::Global, id));
}

class LoopTest : public FireFixture {
 protected:
  /// The time never ends a firing, however slow the host.
  static EngineOptions timeless(EngineOptions options = {}) {
    options.host_time = [] { return std::uint64_t{1}; };
    return options;
  }
  /// All clauses on one probe.
  void start_loop(std::vector<Clause> clauses, EngineOptions options = timeless()) {
    const std::vector<ProbeId> probes(clauses.size(), kProbe);
    start(program(std::move(clauses)), probes, options);
  }
};

TEST_F(LoopTest, AClauseRepeatsWhileItsPredicateHolds) {
  start_loop({repeating(when(less_than(kI, 5), trace(increment(kI))), 0, 100), trace_global(kI)});
  fire(kProbe);
  EXPECT_EQ(numbers(engine_->take_quiescent()), (std::vector<std::int64_t>{1, 2, 3, 4, 5, 5}));
}

TEST_F(LoopTest, TheLimitCountsJumpsBack) {
  start_loop({repeating(trace(increment(kI)), 0, 3)});
  fire(kProbe);
  EXPECT_EQ(numbers(engine_->take_quiescent()), (std::vector<std::int64_t>{1, 2, 3, 4}));
  fire(kProbe);
  EXPECT_EQ(engine_->take_quiescent().records.size(), 4u) << "each firing comes to it afresh";
}

TEST_F(LoopTest, ALoopOfSeveralClausesRunsAllOfThem) {
  start_loop({trace_global(kI), evaluate(increment(kI)),
              repeating(when(less_than(kI, 3), evaluate(increment(kTotal))), 0, 100),
              trace_global(kTotal)});
  fire(kProbe);
  EXPECT_EQ(numbers(engine_->take_quiescent()), (std::vector<std::int64_t>{0, 1, 2, 2}));
}

TEST_F(LoopTest, NestedLoopsCountAfreshEachTime) {
  start_loop({set_zero(kJ),                                                      // 0
              repeating(when(less_than(kJ, 4), evaluate(increment(kJ))), 1, 4),  // 1
              evaluate(increment(kTotal)),                                       // 2
              repeating(when(less_than(kI, 3), evaluate(increment(kI))), 0, 3),  // 3
              trace_global(kTotal), trace_global(kI), trace_global(kJ)});
  fire(kProbe);
  EXPECT_EQ(numbers(engine_->take_quiescent()), (std::vector<std::int64_t>{4, 3, 4}));
}

TEST_F(LoopTest, AnInnerLimitHoldsForEachPassOfTheOuterLoop) {
  start_loop({repeating(evaluate(increment(kI)), 0, 2),  // 3 for each pass
              repeating(evaluate(increment(kJ)), 0, 4),  // 5 passes
              trace_global(kI), trace_global(kJ)});
  fire(kProbe);
  EXPECT_EQ(numbers(engine_->take_quiescent()), (std::vector<std::int64_t>{15, 5}));
}

TEST_F(LoopTest, AFaultEndsTheLoopsAroundItAndTheOthersGoOn) {
  start_loop({evaluate(increment(kI)),                       // 0: in both loops
              evaluate(load_from(kUnmapped)),                // 1: faults
              repeating(evaluate(increment(kJ)), 0, 10),     // 2
              repeating(clause({}), 0, 10),                  // 3: the outer one
              repeating(evaluate(increment(kTotal)), 4, 2),  // 4: another loop
              trace_global(kI), trace_global(kJ), trace_global(kTotal)});
  fire(kProbe);

  const TraceData trace_data = engine_->take_quiescent();

  EXPECT_EQ(trace_data.faults.size(), 1u);
  ASSERT_EQ(trace_data.records.size(), 4u);
  EXPECT_EQ(number(trace_data.records[1]), 1);
  EXPECT_EQ(number(trace_data.records[2]), 1) << "the clauses after the fault still run";
  EXPECT_EQ(number(trace_data.records[3]), 3);
}

TEST_F(LoopTest, ExitEndsALoop) {
  start_loop(
      {evaluate(increment(kI)),
       clause({action(ActionKind::Exit, {load_variable(Opcode::Ldgs, VariableScope::Global, kI)})}),
       repeating(evaluate(increment(kJ)), 0, 10)});
  fire(kProbe);
  EXPECT_EQ(engine_->exit_status(), 1);
}

TEST_F(LoopTest, ARecordThatIsDroppedEndsItsLoop) {
  start_loop({repeating(trace(increment(kI)), 0, 100), trace_global(kI)}, {.buffer_size = 3 * 24});
  fire(kProbe);

  const TraceData trace_data = engine_->take_quiescent();

  EXPECT_EQ(numbers(trace_data), (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(drops(trace_data, DropKind::Principal), 2u) << "the loop's and the last clause's";
}

TEST_F(LoopTest, AllJumpsOfAFiringTogetherAreBounded) {
  Program source = program({repeating(evaluate(increment(kI)), 0, kMostTrips), trace_global(kI)});
  auto verified = verify_program(source);
  ASSERT_TRUE(verified) << verified.error().message;
  engine_.emplace(std::move(*verified), timeless(), 1);
  // Two descriptions of one clause can match the same probe: then its loop is there twice.
  for (const std::uint32_t clause : {0u, 0u, 1u}) engine_->enable(clause, kProbe, {});
  fire(kProbe);

  EXPECT_LE(numbers(engine_->take_quiescent()).at(0),
            static_cast<std::int64_t>(2 * kMostTrips + 2));
}

TEST_F(LoopTest, ExpensiveClausesEndTheirLoopEarlier) {
  // A call may go over whole strings, and here they are as long as they can be.
  Difo expensive = increment(kI);
  expensive.text.insert(expensive.text.begin(), 100,
                        encode_indexed(Opcode::Call, static_cast<unsigned>(Subroutine::Rand), 2));
  start_loop({repeating(evaluate(expensive), 0, kMostTrips), trace_global(kI)},
             timeless({.string_size = 1 << 20}));
  fire(kProbe);

  const std::int64_t trips = numbers(engine_->take_quiescent()).at(0);

  EXPECT_GT(trips, 10);
  EXPECT_LT(trips, 1000) << "the guest would wait for hours";
}

TEST(FiringTime, IsOverOnceItHasTakenTooLongAndErrorGetsAsMuchAgain) {
  constexpr std::uint64_t kHeavy = FiringTime::kLookEvery;
  std::uint64_t now = 5;
  unsigned looks = 0;
  const auto clock = [&] {
    ++looks;
    return now;
  };
  FiringTime time;
  for (unsigned n = 1; n < kHeavy / FiringTime::kLeastOfStep; ++n) {
    EXPECT_FALSE(time.is_over(1, clock));
  }
  EXPECT_EQ(looks, 0u) << "a few steps look at no clock";

  EXPECT_FALSE(time.is_over(kHeavy, clock));
  now += FiringTime::kMost;
  EXPECT_FALSE(time.is_over(kHeavy, clock));
  EXPECT_FALSE(time.was_over());
  EXPECT_TRUE((++now, time.is_over(kHeavy, clock)));
  EXPECT_TRUE(time.was_over());
  now += FiringTime::kMost;
  EXPECT_FALSE(time.is_over(kHeavy, clock));
  EXPECT_TRUE((++now, time.is_over(kHeavy, clock)));
  EXPECT_TRUE((now += FiringTime::kMost, time.is_over(kHeavy, clock))) << "that was all";
  time.begin();
  EXPECT_FALSE(time.is_over(kHeavy, clock));
}

TEST_F(LoopTest, OtherProbesOfTheProgramDoNotMatter) {
  start(program({trace(constant(50)), evaluate(increment(kI)), trace(constant(51)),
                 repeating(when(less_than(kI, 3), trace_global(kI)), 1, 10)}),
        {kBegin, kProbe, kBegin, kProbe});
  fire(kProbe);
  EXPECT_EQ(numbers(engine_->take_quiescent()), (std::vector<std::int64_t>{1, 2}));
}

}  // namespace
}  // namespace ringside::dif
