// The run-time options: the records that the buffer policies hand over and when, drops, sizes, cpu,
// temporal.
#include <gtest/gtest.h>

#include <algorithm>

#include "dif/engine/buffer_plan.h"
#include "dif/testing/fire_fixture.h"

namespace ringside::dif {
namespace {

using namespace testing;

class PolicyTest : public FireFixture {
 protected:
  /// Traces arg0 on kProbe, and 99 at the end.
  void start_tracing(EngineOptions options) {
    start(program({trace(builtin(Builtin::Arg0)), trace(constant(99))}), {kProbe, kEnd}, options);
  }
  void fire_values(std::uint64_t from, std::uint64_t to, std::uint32_t vcpu = 0) {
    for (guest_.arguments[0] = from; guest_.arguments[0] <= to; ++guest_.arguments[0]) {
      fire(kProbe, guest_.arguments[0], vcpu);
    }
  }
};

TEST_F(PolicyTest, RingRecordsAreHandedOverAtTheEndOnly) {
  start_tracing({.buffer_size = 3 * 24, .buffer_policy = BufferPolicy::Ring});
  fire_values(1, 3);
  EXPECT_TRUE(engine_->take().records.empty());
  fire_values(4, 5);
  EXPECT_TRUE(engine_->take().records.empty());
  fire(kEnd, 6);

  const TraceData trace_data = engine_->take_quiescent();

  EXPECT_EQ(numbers(trace_data), (std::vector<std::int64_t>{4, 5, 99}));
  EXPECT_EQ(drops(trace_data, DropKind::Principal), 0u);
}

TEST_F(PolicyTest, ARecordLargerThanTheRingIsDropped) {
  start_tracing({.buffer_size = 23, .buffer_policy = BufferPolicy::Ring});
  fire_values(1, 3);
  EXPECT_EQ(drops(engine_->take_quiescent(), DropKind::Principal), 3u);
}

TEST_F(PolicyTest, FillSaysWhichVcpusAreFullAndEndStillFits) {
  start_tracing({.buffer_size = 5 * 24, .buffer_policy = BufferPolicy::Fill});
  fire_values(1, 2, 0);
  EXPECT_TRUE(engine_->take().filled.empty());
  fire_values(11, 30, 1);
  const TraceData live = engine_->take();
  EXPECT_EQ(live.filled, std::vector<std::uint32_t>{1});
  EXPECT_TRUE(live.records.empty());
  fire_values(3, 3, 0);
  fire(kEnd, 40, 1);

  const TraceData trace_data = engine_->take_quiescent();

  EXPECT_EQ(numbers(trace_data), (std::vector<std::int64_t>{1, 2, 3, 11, 12, 13, 99}));
  EXPECT_EQ(trace_data.filled, std::vector<std::uint32_t>{1});
  EXPECT_EQ(drops(trace_data, DropKind::Principal, 1), 0u) << "fill drops nothing: it ends";
}

TEST_F(PolicyTest, OnlyTheChosenVcpuFires) {
  start_tracing({.cpu = 1});
  guest_.trapped = true;
  fire_values(1, 2, 0);
  fire_values(3, 4, 1);
  guest_.trapped = false;
  fire(kEnd, 9, engine_->host_vcpu());

  const TraceData trace_data = engine_->take_quiescent();

  EXPECT_EQ(numbers(trace_data), (std::vector<std::int64_t>{3, 4, 99}));
  for (const Record& record : trace_data.records) EXPECT_EQ(record.vcpu, 1u);
}

TEST_F(PolicyTest, AVcpuThatDoesNotExistFiresNothing) {
  start_tracing({.cpu = 2});
  fire_values(1, 2, 0);
  EXPECT_TRUE(engine_->take_quiescent().records.empty());
}

TEST_F(PolicyTest, WithoutTemporalTheVcpusComeOneAfterTheOther) {
  start_tracing({.temporal = false});
  fire_values(1, 1, 1);
  fire_values(2, 2, 0);
  fire_values(3, 3, 1);
  fire_values(4, 4, 0);
  EXPECT_EQ(numbers(engine_->take_quiescent()), (std::vector<std::int64_t>{2, 4, 1, 3}));
}

TEST_F(PolicyTest, ExitsRecordFitsIntoSixteenBytes) {
  Difo status = constant(3);
  status.result = {ValueKind::Integer, true, 4};
  start(program({trace(constant("too long")), clause({action(ActionKind::Exit, {status})})}),
        {kProbe, kProbe}, {.buffer_size = 16});
  fire(kProbe);

  EXPECT_EQ(engine_->exit_status(), 3);
  EXPECT_EQ(drops(engine_->take_quiescent(), DropKind::Principal), 1u);
}

TEST_F(PolicyTest, ExitActsWithoutRoomForItsRecord) {
  Difo status = constant(3);
  status.result = {ValueKind::Integer, true, 4};
  start(program({trace(constant(1)), clause({action(ActionKind::Exit, {status}),
                                             action(ActionKind::Trace, {status})})}),
        {kProbe, kProbe}, {.buffer_size = 16, .buffer_policy = BufferPolicy::Ring});
  fire(kProbe);

  const TraceData trace_data = engine_->take_quiescent();

  EXPECT_EQ(engine_->exit_status(), 3);
  EXPECT_TRUE(trace_data.records.empty());
  EXPECT_EQ(drops(trace_data, DropKind::Principal), 2u);
}

class OrdersTest : public PolicyTest {
 protected:
  /// kProbe traces arg0, kBegin has something to do for the consumer.
  void start_with_orders(EngineOptions options) {
    Action order = action(ActionKind::Setopt, {});
    order.format = "quiet";
    order.text = "1";
    start(program({trace(builtin(Builtin::Arg0)), clause({order})}), {kProbe, kBegin}, options);
  }
};

TEST_F(OrdersTest, AreNotDroppedByAFloodOfData) {
  start_with_orders({.buffer_size = 2 * 24});
  for (int i = 0; i < 25; ++i) {
    fire_values(1, 100);
    fire(kBegin);
  }

  const TraceData trace_data = engine_->take_quiescent();

  const auto orders = std::ranges::count(trace_data.records, EcbId{2}, &Record::ecb);
  EXPECT_EQ(orders, 25);
  EXPECT_EQ(trace_data.records.size(), 27u) << "bufsize is what the data has";
  ASSERT_EQ(trace_data.clause_drops.size(), 1u);
  EXPECT_EQ(trace_data.clause_drops[0].clause, 0u);
  EXPECT_EQ(trace_data.clause_drops[0].count, 25u * 100 - 2);
  EXPECT_EQ(drops(trace_data, DropKind::Principal), 25u * 100 - 2);
}

TEST_F(OrdersTest, ThatAreTooManyAreDropsOfTheirClause) {
  start_with_orders({.buffer_size = 24});
  constexpr std::uint64_t kMany = 10'000;
  for (std::uint64_t i = 0; i < kMany; ++i) fire(kBegin);

  const TraceData trace_data = engine_->take_quiescent();

  ASSERT_EQ(trace_data.clause_drops.size(), 1u);
  EXPECT_EQ(trace_data.clause_drops[0].clause, 1u);
  EXPECT_EQ(trace_data.records.size() + trace_data.clause_drops[0].count, kMany);
  EXPECT_TRUE(engine_->take_quiescent().clause_drops.empty()) << "once";
}

TEST_F(OrdersTest, HaveRoomInEachHalfAndOnEachVcpu) {
  start_with_orders({.buffer_size = 24});
  for (int take = 0; take < 4; ++take) {
    for (const std::uint32_t vcpu : {0u, 1u}) {
      fire_values(1, 9, vcpu);
      fire(kBegin, 10, vcpu);
    }
    EXPECT_EQ(engine_->take().records.size(), 4u);
  }
}

TEST_F(PolicyTest, OnlyFillKeepsRoomForEnd) {
  for (const BufferPolicy policy : {BufferPolicy::Switch, BufferPolicy::Ring}) {
    start_tracing({.buffer_size = 24, .buffer_policy = policy});
    fire_values(1, 1);
    EXPECT_EQ(numbers(engine_->take_quiescent()), std::vector<std::int64_t>{1});
  }
}

TEST_F(PolicyTest, ARecordThatNoBufferHoldsDoesNotFitWithFill) {
  for (const BufferPolicy policy : {BufferPolicy::Switch, BufferPolicy::Ring, BufferPolicy::Fill}) {
    start_tracing({.buffer_size = 23, .buffer_policy = policy});
    EXPECT_EQ(engine_->records_fit(), policy != BufferPolicy::Fill);
    start_tracing({.buffer_size = 24, .buffer_policy = policy});
    EXPECT_TRUE(engine_->records_fit());
  }
}

TEST_F(PolicyTest, ARecordThatNoBufferHoldsIsADrop) {
  for (const BufferPolicy policy : {BufferPolicy::Switch, BufferPolicy::Ring}) {
    start_tracing({.buffer_size = 23, .buffer_policy = policy});
    fire_values(1, 2);
    const TraceData trace_data = engine_->take_quiescent();
    EXPECT_TRUE(trace_data.records.empty());
    EXPECT_EQ(drops(trace_data, DropKind::Principal), 2u);
  }
}

TEST_F(PolicyTest, FillMustHoldAllRecordsOfEnd) {
  const auto fit = [&](BufferPolicy policy, std::size_t size) {
    start(program({trace(constant(1)), trace(constant(2))}), {kEnd, kEnd},
          {.buffer_size = size, .buffer_policy = policy});
    return engine_->records_fit();
  };
  EXPECT_TRUE(fit(BufferPolicy::Switch, 24));
  EXPECT_FALSE(fit(BufferPolicy::Fill, 47));
  EXPECT_TRUE(fit(BufferPolicy::Fill, 48));
}

TEST_F(PolicyTest, WhatEndHasNoRoomForIsADropWithFill) {
  start(program({trace(constant(1)), trace(constant(2)), trace(constant(3))}), {kEnd, kEnd, kEnd},
        {.buffer_size = 48, .buffer_policy = BufferPolicy::Fill});
  fire(kEnd);
  EXPECT_EQ(drops(engine_->take_quiescent(), DropKind::Principal), 1u);
}

TEST_F(PolicyTest, AnAggregationThatDoesNotFitIntoAggsizeIsDropped) {
  start(count_by_execname(), {kProbe}, {.aggregation_size = 32});
  fire(kProbe);
  fire(kProbe);

  const TraceData trace_data = engine_->take_quiescent();

  EXPECT_TRUE(trace_data.aggregates.empty());
  EXPECT_EQ(drops(trace_data, DropKind::Aggregation), 2u);
}

TEST_F(PolicyTest, DynamicDropsSayWhetherElementsWaitToBeCleaned) {
  constexpr std::uint64_t kClean = 1'000;
  start(program({clause({assign(Opcode::Stts, VariableScope::Thread, 9)}),
                 clause({assign(Opcode::Stts, VariableScope::Thread, 0)})}),
        {kProbe, kBegin}, {.dynamic_size = 80, .clean_interval = kClean});
  const auto store = [&](std::uint64_t thread, ProbeId probe, std::uint64_t at) {
    guest_.set(ContextVariable::Tid, thread);
    fire(probe, at);
  };
  store(1, kProbe, 1);
  store(2, kProbe, 2);               // no room
  store(1, kBegin, 3);               // frees
  store(2, kProbe, 4);               // dirty
  store(2, kProbe, 1 + kClean);      // rinsing
  store(2, kProbe, 1 + 2 * kClean);  // free
  store(3, kProbe, 2 + 2 * kClean);  // no room

  const TraceData trace_data = engine_->take_quiescent();

  EXPECT_EQ(drops(trace_data, DropKind::Dynamic), 2u);
  EXPECT_EQ(drops(trace_data, DropKind::DynamicDirty), 1u);
  EXPECT_EQ(drops(trace_data, DropKind::DynamicRinse), 1u);
}

TEST(BufferPlan, HalvesWhatTheHostHasNoRoomFor) {
  EngineOptions options;
  options.buffer_size = 4 << 20;
  options.aggregation_size = 64 << 20;
  options.speculation_size = 3 << 20;
  options.speculations = 4;

  const auto plan = plan_buffers(options, 2, 8 << 20);

  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->options.buffer_size, 2u << 20) << "two halves for each of two vCPUs";
  EXPECT_EQ(plan->options.aggregation_size, 2u << 20) << "the same";
  EXPECT_EQ(plan->options.speculation_size, 768u << 10);
  EXPECT_EQ(plan->lowered, (std::vector<LoweredBuffer>{{BufferKind::Principal, 2 << 20},
                                                       {BufferKind::Aggregation, 2 << 20},
                                                       {BufferKind::Speculation, 768 << 10}}));
}

TEST(BufferPlan, RingsHaveNoSecondHalf) {
  EngineOptions options;
  options.buffer_policy = BufferPolicy::Ring;
  options.aggregation_size = 2 << 20;
  const auto plan = plan_buffers(options, 2, 8 << 20);
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->lowered.empty());
}

TEST(BufferPlan, ManualRefusesInstead) {
  EngineOptions options;
  options.buffer_resize = BufferResize::Manual;
  EXPECT_TRUE(plan_buffers(options, 1, 8 << 20));

  const auto plan = plan_buffers(options, 2, 8 << 20);

  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::Limit);
}

TEST(BufferPlan, AbsurdSizesEndInsideTheHost) {
  EngineOptions options;
  options.buffer_size = options.aggregation_size = options.dynamic_size = options.speculation_size =
      SIZE_MAX;

  const auto plan = plan_buffers(options, 64);

  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->lowered.size(), 4u);
  const Engine engine(*verify_program(program({clause({})})), options, 64);
  EXPECT_EQ(engine.lowered().size(), 4u);
}

}  // namespace
}  // namespace ringside::dif
