// One firing: records, aggregations, faults, exit. The binary's operator new aborts when it is used
// during a firing, so every test here is also a test that firing does not allocate.
#include <gtest/gtest.h>

#include "dif/testing/fire_fixture.h"

namespace ringside::dif {
namespace {

using namespace testing;

using FireTest = FireFixture;

TEST_F(FireTest, TheDefaultActionRecordsTheFiringAlone) {
  start(program({clause({})}), {kProbe});
  fire(kProbe, 77, 1);

  const TraceData trace_data = engine_->take_quiescent();

  ASSERT_EQ(trace_data.records.size(), 1u);
  EXPECT_EQ(trace_data.records[0].ecb, EcbId{1});
  EXPECT_EQ(trace_data.records[0].vcpu, 1u);
  EXPECT_EQ(trace_data.records[0].timestamp, 77u);
  EXPECT_TRUE(trace_data.records[0].data.empty());
  EXPECT_FALSE(trace_data.finished);
  EXPECT_TRUE(engine_->take_quiescent().records.empty());
}

TEST_F(FireTest, FieldsAreAlignedInTheRecordWithItsHeader) {
  const ValueType byte{ValueKind::Integer, false, 1};
  Difo small = constant(0x1ff);
  small.result = byte;
  start(program({clause({action(ActionKind::Printf,
                                {small, constant(-5), builtin(Builtin::Execname, kString)})})}),
        {kProbe});
  fire(kProbe);

  const TraceData trace_data = engine_->take_quiescent();

  ASSERT_EQ(trace_data.records.size(), 1u);
  const auto& fields = engine_->ecb(EcbId{1}).fields;
  EXPECT_EQ(fields[1].offset, 4u);
  EXPECT_EQ(fields[2].offset, 12u);
  EXPECT_EQ(fields[2].size, 256u);
  EXPECT_EQ(number(trace_data.records[0], 0), 0xff);
  EXPECT_EQ(number(trace_data.records[0], 1), -5);
  EXPECT_EQ(text(trace_data.records[0], 2), "workload");
}

TEST_F(FireTest, AFalsePredicateDoesNothing) {
  Clause guarded = trace(constant(1));
  guarded.predicate = builtin(Builtin::Arg0);
  start(program({guarded}), {kProbe});
  fire(kProbe);
  guest_.arguments[0] = 1;
  fire(kProbe);

  EXPECT_EQ(engine_->take_quiescent().records.size(), 1u);
}

TEST_F(FireTest, AssignmentsAndAggregationsLeaveNoRecord) {
  Program source = count_by_execname();
  source.clauses.push_back(clause({assign(Opcode::Stgs, VariableScope::Global, 5)}));
  source.clauses.push_back(trace(load_variable(Opcode::Ldgs, VariableScope::Global)));
  start(source, {kProbe, kProbe, kProbe});
  fire(kProbe);

  const TraceData trace_data = engine_->take_quiescent();

  ASSERT_EQ(trace_data.records.size(), 1u);
  EXPECT_EQ(number(trace_data.records[0]), 5);
}

TEST_F(FireTest, CountsByStringKey) {
  start(count_by_execname(), {kProbe});
  for (int i = 0; i < 3; ++i) fire(kProbe);
  guest_.command = "sh";
  fire(kProbe);

  const TraceData trace_data = engine_->take_quiescent();

  ASSERT_EQ(trace_data.aggregates.size(), 2u);
  const auto& first = trace_data.aggregates[0];
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(first.key.data()), first.key.size()),
            std::string("workload\0", 9));
  EXPECT_EQ(first.words, std::vector<std::int64_t>{3});
  EXPECT_EQ(trace_data.aggregates[1].words, std::vector<std::int64_t>{1});
  EXPECT_LT(first.first_seen, trace_data.aggregates[1].first_seen);
  EXPECT_TRUE(engine_->take_quiescent().aggregates.empty()) << "takes are changes";
}

TEST_F(FireTest, KeysOfNumbersHaveTheirNaturalSize) {
  const ValueType int32{ValueKind::Integer, true, 4};
  start(program({clause({aggregate(
                    0, {builtin(Builtin::Pid, int32), constant("k"), builtin(Builtin::Arg0)})})},
                {Aggregation{"s", AggregateFunction::Sum, {int32, kString}, 0}}),
        {kProbe});
  guest_.set(ContextVariable::Pid, 0x01020304);
  guest_.arguments[0] = 40;
  fire(kProbe);

  const TraceData trace_data = engine_->take_quiescent();

  ASSERT_EQ(trace_data.aggregates.size(), 1u);
  const std::vector<std::byte> key{std::byte{4}, std::byte{3},   std::byte{2},
                                   std::byte{1}, std::byte{'k'}, std::byte{0}};
  EXPECT_EQ(trace_data.aggregates[0].key, key);
  EXPECT_EQ(trace_data.aggregates[0].words, std::vector<std::int64_t>{40});
}

TEST_F(FireTest, AFaultDiscardsTheRecordAndIsReported) {
  start(program({clause({action(ActionKind::Trace, {constant(1)}),
                         action(ActionKind::Printf, {constant(2), load_from(kUnmapped)})}),
                 trace(constant(7))}),
        {kProbe, kProbe});
  fire(kProbe, 9, 1);

  const TraceData trace_data = engine_->take_quiescent();

  ASSERT_EQ(trace_data.records.size(), 1u) << "the other clause runs";
  EXPECT_EQ(number(trace_data.records[0]), 7);
  ASSERT_EQ(trace_data.faults.size(), 1u);
  const FaultReport& report = trace_data.faults[0];
  EXPECT_EQ(report.ecb, EcbId{1});
  EXPECT_EQ(report.vcpu, 1u);
  EXPECT_EQ(report.action, 3u) << "each argument of printf() counts";
  EXPECT_EQ(report.fault.kind, FaultKind::BadAddress);
  EXPECT_EQ(report.fault.address, kUnmapped);
  EXPECT_EQ(report.fault.pc, 4u);
}

TEST_F(FireTest, AFaultInThePredicateIsActionZero) {
  Clause guarded = clause({});
  guarded.predicate = load_from(kUnmapped);
  start(program({guarded}), {kProbe});
  fire(kProbe);

  const TraceData trace_data = engine_->take_quiescent();

  ASSERT_EQ(trace_data.faults.size(), 1u);
  EXPECT_EQ(trace_data.faults[0].action, 0u);
  EXPECT_TRUE(trace_data.records.empty());
}

TEST_F(FireTest, AStringThatCannotBeReadFaultsOutsideDif) {
  Difo pointer = constant(kUnmapped);
  pointer.result = kString;
  start(program({trace(pointer)}), {kProbe});
  fire(kProbe);

  const TraceData trace_data = engine_->take_quiescent();

  ASSERT_EQ(trace_data.faults.size(), 1u);
  EXPECT_EQ(trace_data.faults[0].fault.pc, kNoPc);
  EXPECT_EQ(trace_data.faults[0].fault.address, kUnmapped);
}

TEST_F(FireTest, ErrorFiresWithTheFaultAsArguments) {
  start(
      program({trace(load_from(kUnmapped)),
               clause({action(ActionKind::Printf, {builtin(Builtin::Arg1), builtin(Builtin::Arg2),
                                                   builtin(Builtin::Arg3), builtin(Builtin::Arg4),
                                                   builtin(Builtin::Arg5), builtin(Builtin::Id)})}),
               trace(builtin(Builtin::Id))}),
      {kProbe, kError, kProbe});
  fire(kProbe);

  const TraceData trace_data = engine_->take_quiescent();

  ASSERT_EQ(trace_data.records.size(), 2u);
  const Record& error = trace_data.records[0];
  EXPECT_EQ(number(error, 0), 1) << "epid";
  EXPECT_EQ(number(error, 1), 1) << "action";
  EXPECT_EQ(number(error, 2), 4) << "offset";
  EXPECT_EQ(number(error, 3), 1) << "fault";
  EXPECT_EQ(number(error, 4), static_cast<std::int64_t>(kUnmapped));
  EXPECT_EQ(number(error, 5), static_cast<std::int64_t>(kError.value));
  EXPECT_EQ(number(trace_data.records[1]), static_cast<std::int64_t>(kProbe.value))
      << "the interrupted firing goes on as itself";
}

TEST_F(FireTest, AFaultInErrorIsCountedAndGoesNoFurther) {
  start(program({trace(load_from(kUnmapped)), trace(load_from(kUnmapped))}), {kProbe, kError});
  fire(kProbe);

  const TraceData trace_data = engine_->take_quiescent();

  EXPECT_EQ(trace_data.faults.size(), 1u);
  EXPECT_EQ(trace_data.drops[0][static_cast<std::size_t>(DropKind::DoubleError)], 1u);
}

TEST_F(FireTest, ExitStopsEverythingButEnd) {
  start(program({clause({action(ActionKind::Exit, {constant(3)})}), trace(constant(1)),
                 trace(constant(2)), clause({action(ActionKind::Exit, {constant(4)})})}),
        {kBegin, kBegin, kEnd, kEnd});
  EXPECT_EQ(engine_->exit_status(), std::nullopt);
  fire(kBegin);
  fire(kBegin);
  EXPECT_EQ(engine_->exit_status(), 3);
  fire(kEnd);
  fire(kEnd);

  const TraceData trace_data = engine_->take_quiescent();

  EXPECT_TRUE(trace_data.finished);
  EXPECT_EQ(engine_->exit_status(), 4) << "the last one counts";
  ASSERT_EQ(trace_data.records.size(), 3u) << "exit's own, and END's two once";
  EXPECT_EQ(number(trace_data.records[0]), 3);
  EXPECT_EQ(number(trace_data.records[1]), 2);
}

TEST_F(FireTest, AFullBufferDropsTheNewestRecord) {
  start(program({trace(constant(1))}), {kProbe}, {.buffer_size = 4096}, 1);
  for (int i = 0; i < 200; ++i) fire(kProbe, static_cast<std::uint64_t>(i));

  const TraceData trace_data = engine_->take_quiescent();

  ASSERT_EQ(trace_data.records.size(), 4096u / 24);
  EXPECT_EQ(trace_data.records.back().timestamp, trace_data.records.size() - 1);
  EXPECT_EQ(trace_data.drops[0][static_cast<std::size_t>(DropKind::Principal)],
            200 - trace_data.records.size());
}

TEST_F(FireTest, NewKeysThatDoNotFitAreDropped) {
  start(program({clause({aggregate(0, {builtin(Builtin::Arg0)})})},
                {Aggregation{"", AggregateFunction::Count, {kLong}, 0}}),
        {kProbe}, {.aggregation_size = 4096});
  for (guest_.arguments[0] = 0; guest_.arguments[0] < 100; ++guest_.arguments[0]) fire(kProbe);

  const TraceData trace_data = engine_->take_quiescent();

  EXPECT_EQ(trace_data.aggregates.size() +
                trace_data.drops[0][static_cast<std::size_t>(DropKind::Aggregation)],
            100u);
  EXPECT_GT(trace_data.aggregates.size(), 50u);
}

TEST_F(FireTest, SelfVariablesFollowTheThreadAndTheIdleVcpu) {
  start(program({clause({assign(Opcode::Stts, VariableScope::Thread, 9)}),
                 trace(load_variable(Opcode::Ldts, VariableScope::Thread))}),
        {kBegin, kProbe});
  guest_.set(ContextVariable::Tid, 100);
  fire(kBegin);
  fire(kProbe, 1);
  guest_.set(ContextVariable::Tid, 101);
  fire(kProbe, 2);
  guest_.set(ContextVariable::Tid, 0);
  fire(kBegin, 3, 1);
  fire(kProbe, 4, 0);
  fire(kProbe, 5, 1);

  const TraceData trace_data = engine_->take_quiescent();

  std::vector<std::int64_t> seen;
  for (const Record& record : trace_data.records) seen.push_back(number(record));
  EXPECT_EQ(seen, (std::vector<std::int64_t>{9, 0, 0, 9}));
}

TEST_F(FireTest, AThreadDoesNotInheritFromTheOneWhoseIdItHas) {
  start(program({clause({assign(Opcode::Stts, VariableScope::Thread, 9)}),
                 trace(load_variable(Opcode::Ldts, VariableScope::Thread))}),
        {kBegin, kProbe});
  guest_.set(ContextVariable::Tid, 100);
  guest_.set(ContextVariable::Born, 5'000);
  fire(kBegin);
  fire(kProbe, 1);
  guest_.set(ContextVariable::Born, 6'000);
  fire(kProbe, 2);

  const TraceData trace_data = engine_->take_quiescent();

  ASSERT_EQ(trace_data.records.size(), 2u);
  EXPECT_EQ(number(trace_data.records[0]), 9);
  EXPECT_EQ(number(trace_data.records[1]), 0);
}

TEST_F(FireTest, ClauseLocalsAreSharedByTheClausesOfAFiring) {
  start(program({clause({assign(Opcode::Stls, VariableScope::Clause, 6)}),
                 trace(load_variable(Opcode::Ldls, VariableScope::Clause))}),
        {kProbe, kProbe});
  fire(kProbe);
  EXPECT_EQ(number(engine_->take_quiescent().records.at(0)), 6);
}

TEST_F(FireTest, TracememCopiesTheBytes) {
  guest_.kernel_memory.put_text(kUnmapped, "0123456789abcdef");
  Action tracemem = action(ActionKind::Tracemem, {constant(kUnmapped)});
  tracemem.argument = 10;
  tracemem.has_argument = true;
  start(program({clause({tracemem})}), {kProbe});
  fire(kProbe);

  const TraceData trace_data = engine_->take_quiescent();

  ASSERT_EQ(trace_data.records.size(), 1u);
  const std::size_t at = engine_->ecb(EcbId{1}).fields[0].offset;
  EXPECT_EQ(std::memcmp(trace_data.records[0].data.data() + at, "0123456789", 10), 0);
  EXPECT_EQ(engine_->ecb(EcbId{1}).fields[0].size, 10u);
}

TEST_F(FireTest, ProbeNamesAreTheFiringProbes) {
  start(program({trace(builtin(Builtin::Probefunc, kString))}), {kProbe});
  fire(kProbe);
  EXPECT_EQ(text(engine_->take_quiescent().records.at(0)), "vfs_read");
  EXPECT_EQ(engine_->probe_name(kProbe).function, "vfs_read");
}

TEST_F(FireTest, RecordsMergeByTimestampButKeepEachVcpusOrder) {
  start(program({clause({})}), {kProbe});
  fire(kProbe, 10, 0);
  fire(kProbe, 5, 0);  // a clock that went backward
  fire(kProbe, 7, 1);
  fire(kProbe, 20, 1);

  const TraceData trace_data = engine_->take_quiescent();

  std::vector<std::uint64_t> times;
  for (const Record& record : trace_data.records) times.push_back(record.timestamp);
  EXPECT_EQ(times, (std::vector<std::uint64_t>{7, 10, 5, 20}));
}

TEST_F(FireTest, FiringAnUnknownProbeDoesNothing) {
  start(program({clause({})}), {kProbe});
  fire(ProbeId{5000});
  fire(ProbeId{0});
  EXPECT_TRUE(engine_->take_quiescent().records.empty());
}

class EngineRecordNeeds : public FireFixture {};

TEST_F(EngineRecordNeeds, AreThoseOfAllClausesOfTheProbe) {
  constexpr ProbeId kOther{5};
  start(program({trace(builtin(Builtin::Arg0)), trace(builtin(Builtin::Arg3)),
                 trace(builtin(Builtin::Errno)), trace(load_from(kUnmapped))}),
        {kProbe, kProbe, kOther, kBegin});

  const RecordNeeds needs = engine_->record_needs(kProbe);
  EXPECT_EQ(needs.arguments, 0b1001u);
  EXPECT_FALSE(needs.error_number);
  EXPECT_FALSE(needs.obstacle);
  EXPECT_TRUE(engine_->record_needs(kOther).error_number);
  EXPECT_EQ(engine_->record_needs(kOther).arguments, 0u);
  EXPECT_TRUE(engine_->record_needs(kBegin).obstacle);
  const RecordNeeds of_none = engine_->record_needs(ProbeId{77});
  EXPECT_FALSE(of_none.obstacle || of_none.error_number || of_none.arguments != 0);
}

TEST_F(EngineRecordNeeds, OfACallsReturnKnowWhatItsEntryHasKept) {
  const std::uint16_t id = kFirstUserVariable + 1;
  Difo store = difo({encode_indexed(Opcode::Ldgs, static_cast<unsigned>(Builtin::Arg1), 1),
                     encode_indexed(Opcode::Stts, id, 1), encode_return(0)},
                    {ValueKind::Void, false, 0});
  Difo use =
      difo({encode_indexed(Opcode::Ldts, id, 1), encode(Opcode::Uldx, 1, 0, 1), encode_return(1)});
  store.variables =
      use.variables = {{id, VariableScope::Thread, VariableKind::Scalar, kLong, "path"}};
  Clause entry = clause({action(ActionKind::Trace, {store})});
  entry.probes = {{"syscall", "", "open", "entry"}};
  const Program both = program({entry, trace(use)});
  start(both, {});
  engine_->enable(0, kProbe, {"syscall", "vmlinux", "open", "entry"});
  engine_->enable(1, ProbeId{5}, {"syscall", "vmlinux", "open", "return"});
  engine_->enable(1, ProbeId{6}, {"syscall", "vmlinux", "close", "return"});

  const RecordNeeds needs = engine_->record_needs(ProbeId{5}, EntryArguments::Kept);
  EXPECT_FALSE(needs.obstacle);
  ASSERT_FALSE(needs.loads.empty());
  EXPECT_EQ(needs.loads[0].at, (RecordAddress{RecordAddress::Base::Kept, 1, 0}));
  EXPECT_TRUE(engine_->record_needs(ProbeId{5}).obstacle);
  EXPECT_TRUE(engine_->record_needs(ProbeId{6}, EntryArguments::Kept).obstacle);
}

TEST_F(EngineRecordNeeds, AreThoseOfErrorTooWhichFiresInsideOfAFiring) {
  start(program({trace(builtin(Builtin::Arg0)), trace(load_from(kUnmapped)),
                 trace(builtin(Builtin::Arg1))}),
        {kProbe, kError, kError});

  const RecordNeeds needs = engine_->record_needs(kProbe);
  EXPECT_TRUE(needs.obstacle);
  EXPECT_EQ(needs.arguments, 0b1u) << "those of ERROR describe the fault";

  engine_->mute_error_probe();
  EXPECT_FALSE(engine_->record_needs(kProbe).obstacle);
  EXPECT_EQ(engine_->record_needs(kProbe).arguments, 0b1u);

  engine_->unmute_error_probe();
  EXPECT_TRUE(engine_->record_needs(kProbe).obstacle);
}

}  // namespace
}  // namespace ringside::dif
