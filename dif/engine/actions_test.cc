// The results of actions other than printf() and aggregations: stacks and symbols as fields and
// keys, tracemem of a dynamic size, and the actions that change the guest.
#include <gtest/gtest.h>

#include "dif/engine/packet_record.h"
#include "dif/program/aggregate_function.h"
#include "dif/testing/fire_fixture.h"

namespace ringside::dif {
namespace {

using namespace testing;

using Words = std::vector<std::uint64_t>;

class ActionsTest : public FireFixture {
 protected:
  ActionsTest() {
    guest_.set(ContextVariable::Pid, 1234);
    guest_.kernel_frames = {0xa1, 0xa2, 0xa3};
    guest_.user_frames = {0xb1, 0xb2};
  }
};

ValueType code(ValueKind kind, std::uint32_t size) {
  return {kind, false, size};
}

Difo of_kind(ValueKind kind, std::uint32_t size, std::uint64_t address = 0x77) {
  Difo made = constant(address);
  made.result = code(kind, size);
  return made;
}

TEST_F(ActionsTest, StacksAreRecordedInnermostFirstAndPaddedWithZero) {
  start(program({clause({action(ActionKind::Trace, {of_kind(ValueKind::KernelStack, 40)}),
                         action(ActionKind::Trace, {of_kind(ValueKind::KernelStack, 16)}),
                         action(ActionKind::Trace, {of_kind(ValueKind::UserStack, 32)}),
                         action(ActionKind::Trace, {of_kind(ValueKind::UserStack, 16)})})}),
        {kProbe});
  fire(kProbe);

  const TraceData trace_data = engine_->take_quiescent();

  ASSERT_EQ(trace_data.records.size(), 1u);
  EXPECT_EQ(words(trace_data.records[0], 0), (Words{0xa1, 0xa2, 0xa3, 0, 0}));
  EXPECT_EQ(words(trace_data.records[0], 1), (Words{0xa1, 0xa2}));
  EXPECT_EQ(words(trace_data.records[0], 2), (Words{1234, 0xb1, 0xb2, 0}));
  EXPECT_EQ(words(trace_data.records[0], 3), (Words{1234, 0xb1}));
}

TEST_F(ActionsTest, TheProcessOfRecordedUserCodeIsToldUnlessTheHostFires) {
  for (const ValueKind kind : {ValueKind::UserStack, ValueKind::UserAddress}) {
    start(program({trace(of_kind(kind, 16)), trace(of_kind(ValueKind::KernelStack, 16))}),
          {kProbe, kBegin});
    guest_.trapped = false;
    fire(kProbe);
    EXPECT_FALSE(engine_->next_recorded_process());
    guest_.trapped = true;
    fire(kBegin);
    EXPECT_FALSE(engine_->next_recorded_process()) << "the kernel's code is in no process";
    fire(kProbe);
    EXPECT_EQ(engine_->next_recorded_process(), 1234u);
    EXPECT_FALSE(engine_->next_recorded_process());
  }
}

TEST_F(ActionsTest, SymbolsAreAddressesAndThoseOfUsersHaveTheProcessBefore) {
  start(program({clause({action(ActionKind::Trace, {of_kind(ValueKind::KernelSymbol, 8)}),
                         action(ActionKind::Trace, {of_kind(ValueKind::KernelModule, 8)}),
                         action(ActionKind::Trace, {of_kind(ValueKind::UserSymbol, 16)}),
                         action(ActionKind::Trace, {of_kind(ValueKind::UserModule, 16)}),
                         action(ActionKind::Trace, {of_kind(ValueKind::UserAddress, 16)})})}),
        {kProbe});
  fire(kProbe);

  const TraceData trace_data = engine_->take_quiescent();

  ASSERT_EQ(trace_data.records.size(), 1u);
  EXPECT_EQ(words(trace_data.records[0], 0), (Words{0x77}));
  EXPECT_EQ(words(trace_data.records[0], 1), (Words{0x77}));
  for (const std::size_t field : {2u, 3u, 4u}) {
    EXPECT_EQ(words(trace_data.records[0], field), (Words{1234, 0x77}));
  }
}

TEST_F(ActionsTest, StacksOfBothKindsAreOneTypeOfKey) {
  const std::vector<ValueType> keys{code(ValueKind::UserStack, 40)};
  const auto counts = [](ValueKind kind, std::uint32_t size) {
    return clause({aggregate(0, {of_kind(kind, size)})});
  };
  start(program({counts(ValueKind::KernelStack, 32), counts(ValueKind::KernelStack, 24),
                 counts(ValueKind::UserStack, 40), counts(ValueKind::UserStack, 24)},
                {Aggregation{"", AggregateFunction::Count, keys, 0}}),
        {kProbe, kProbe, kProbe, kProbe});
  fire(kProbe);

  const TraceData trace_data = engine_->take_quiescent();

  ASSERT_EQ(trace_data.aggregates.size(), 2u);
  const auto frames = [&](std::size_t at) {
    Words made(5);
    EXPECT_EQ(trace_data.aggregates[at].key.size(), 40u);
    std::memcpy(made.data(), trace_data.aggregates[at].key.data(), 40);
    return made;
  };
  EXPECT_EQ(frames(0), (Words{kKernelFrames, 0xa1, 0xa2, 0xa3, 0}));
  EXPECT_EQ(frames(1), (Words{1234, 0xb1, 0xb2, 0, 0}));
  EXPECT_EQ(trace_data.aggregates[0].words[0], 2);
  EXPECT_EQ(trace_data.aggregates[1].words[0], 2);
}

TEST_F(ActionsTest, StacksAndSymbolsAreKeys) {
  const std::vector<ValueType> keys{code(ValueKind::KernelStack, 32), kString,
                                    code(ValueKind::UserStack, 24),
                                    code(ValueKind::UserSymbol, 16)};
  start(program({clause({aggregate(
                    0, {of_kind(ValueKind::KernelStack, 32), constant("k"),
                        of_kind(ValueKind::UserStack, 24), of_kind(ValueKind::UserSymbol, 16)})})},
                {Aggregation{"", AggregateFunction::Count, keys, 0}}),
        {kProbe});
  fire(kProbe);
  fire(kProbe);
  guest_.kernel_frames[0] = 0xa9;
  fire(kProbe);

  const TraceData trace_data = engine_->take_quiescent();

  ASSERT_EQ(trace_data.aggregates.size(), 2u);
  const auto& key = trace_data.aggregates[0].key;
  ASSERT_EQ(key.size(), 32u + 2 + 24 + 16);
  Words frames(4), user(3), symbol(2);
  std::memcpy(frames.data(), key.data(), 32);
  std::memcpy(user.data(), key.data() + 34, 24);
  std::memcpy(symbol.data(), key.data() + 58, 16);
  EXPECT_EQ(frames, (Words{0xa1, 0xa2, 0xa3, 0}));
  EXPECT_EQ(user, (Words{1234, 0xb1, 0xb2}));
  EXPECT_EQ(symbol, (Words{1234, 0x77}));
  EXPECT_EQ(trace_data.aggregates[0].words, std::vector<std::int64_t>{2});
  EXPECT_EQ(trace_data.aggregates[1].words, std::vector<std::int64_t>{1});
}

Action dynamic_tracemem(std::uint64_t address, std::uint64_t most, std::uint64_t wanted) {
  Action made = action(ActionKind::TracememDynamic, {constant(address), constant(wanted)});
  made.argument = most;
  made.has_argument = true;
  return made;
}

Clause pcap(std::uint64_t skb, std::uint64_t link) {
  return clause({action(ActionKind::Pcap, {constant(skb), constant(link)})});
}

TEST_F(ActionsTest, APacketIsRecordedWithWhatIsKnownOfIt) {
  CopiedPacket copied{.length = 3000, .has_link = true, .device = {"eth0"}};
  guest_.packets[{9, PacketPart::Link}] = {copied, "bytes of it"};
  guest_.command = "sender";
  start(program({pcap(9, 1)}), {kProbe}, {.packet_size = 16});
  engine_->fire(kProbe, FireRecord{0, 1, 123'456}, guest_);

  const TraceData trace_data = engine_->take_quiescent();

  ASSERT_EQ(trace_data.records.size(), 1u);
  const Record& record = trace_data.records[0];
  const RecordField& field = engine_->ecb(record.ecb).fields[0];
  PacketHeader header;
  ASSERT_EQ(field.size, sizeof header + 16);
  const auto data = record.data.subspan(field.offset, field.size);
  std::memcpy(&header, data.data(), sizeof header);
  EXPECT_EQ(header.walltimestamp, 123'456);
  EXPECT_EQ(header.captured, 11u);
  EXPECT_EQ(header.length, 3000u);
  EXPECT_EQ(header.pid, 1234);
  EXPECT_EQ(header.process, (std::array<char, 16>{"sender"}));
  EXPECT_EQ(header.device, (std::array<char, 16>{"eth0"}));
  const std::string bytes(reinterpret_cast<const char*>(data.data()) + sizeof header, 16);
  EXPECT_EQ(bytes, std::string("bytes of it\0\0\0\0\0", 16));
  EXPECT_EQ(number(record, 1), 1);
}

TEST_F(ActionsTest, APacketWithoutALinkHeaderIsRecordedAsOneOfIp) {
  guest_.packets[{9, PacketPart::Link}] = {{}, "x"};
  guest_.packets[{9, PacketPart::Network}] = {{}, "y"};
  guest_.packets[{9, PacketPart::Data}] = {{}, "z"};
  start(program({pcap(9, 1), pcap(9, 101), pcap(9, 226)}), {kProbe, kProbe, kProbe});
  fire(kProbe);

  const TraceData trace_data = engine_->take_quiescent();

  ASSERT_EQ(trace_data.records.size(), 3u);
  std::vector<std::pair<char, std::int64_t>> found;
  for (const Record& record : trace_data.records) {
    const std::size_t at = engine_->ecb(record.ecb).fields[0].offset + sizeof(PacketHeader);
    found.emplace_back(static_cast<char>(record.data[at]), number(record, 1));
  }
  EXPECT_EQ(found,
            (std::vector<std::pair<char, std::int64_t>>{{'x', 101}, {'y', 101}, {'z', 226}}));
}

TEST_F(ActionsTest, WhatIsNoPacketOrNoLinkTypeIsAFault) {
  guest_.packets[{9, PacketPart::Data}] = {{}, "x"};
  start(program({pcap(8, 1), pcap(9, 0x10000)}), {kProbe, kProbe});
  fire(kProbe);

  const TraceData trace_data = engine_->take_quiescent();

  EXPECT_TRUE(trace_data.records.empty());
  ASSERT_EQ(trace_data.faults.size(), 2u);
  EXPECT_EQ(trace_data.faults[0].fault.kind, FaultKind::BadAddress);
  EXPECT_EQ(trace_data.faults[1].fault.kind, FaultKind::IllegalOperation);
}

TEST_F(ActionsTest, TracememOfADynamicSizeShowsAtMostTheMaximum) {
  guest_.kernel_memory.put_text(kUnmapped, "0123456789");
  start(
      program({clause({dynamic_tracemem(kUnmapped, 8, 3), dynamic_tracemem(kUnmapped, 8, 100),
                       dynamic_tracemem(kUnmapped, 8, ~0ull), dynamic_tracemem(kUnmapped, 8, 0)})}),
      {kProbe});
  fire(kProbe);

  const TraceData trace_data = engine_->take_quiescent();

  ASSERT_EQ(trace_data.records.size(), 1u);
  const Record& record = trace_data.records[0];
  const auto& fields = engine_->ecb(EcbId{1}).fields;
  ASSERT_EQ(fields.size(), 8u);
  EXPECT_EQ(fields[0].type, (ValueType{ValueKind::Bytes, false, 8}));
  EXPECT_EQ(fields[1].type, (ValueType{ValueKind::Integer, false, 8}));
  EXPECT_EQ(fields[1].argument, 1u);
  EXPECT_EQ(std::memcmp(record.data.data() + fields[0].offset, "012\0\0\0\0\0", 8), 0);
  EXPECT_EQ(std::memcmp(record.data.data() + fields[2].offset, "01234567", 8), 0);
  EXPECT_EQ(number(record, 1), 3);
  EXPECT_EQ(number(record, 3), 8);
  EXPECT_EQ(number(record, 5), 8) << "a negative size is a large one";
  EXPECT_EQ(number(record, 7), 8) << "and 0 is no limit";
  EXPECT_TRUE(trace_data.faults.empty());
}

TEST_F(ActionsTest, ActionsOfTheConsumerAreRecordsWithTheirArguments) {
  Action system = action(ActionKind::System, {constant("ls"), constant(5)});
  system.format = "%s %d";
  start(program({clause({action(ActionKind::Ftruncate, {}), system})}), {kProbe});
  fire(kProbe);

  const TraceData trace_data = engine_->take_quiescent();

  ASSERT_EQ(trace_data.records.size(), 1u);
  EXPECT_EQ(text(trace_data.records[0], 0), "ls");
  EXPECT_EQ(number(trace_data.records[0], 1), 5);
}

TEST_F(ActionsTest, WhatTheMachineDoesReachesItInOrderAndLeavesNoRecord) {
  start(program({clause({action(ActionKind::Stop, {}), action(ActionKind::Raise, {constant(9)}),
                         action(ActionKind::Breakpoint, {}), action(ActionKind::Panic, {})})}),
        {kProbe});
  fire(kProbe);

  ASSERT_EQ(guest_.performed_count, 4u);
  EXPECT_EQ(guest_.performed[0], (std::pair{ActionKind::Stop, std::uint64_t{0}}));
  EXPECT_EQ(guest_.performed[1], (std::pair{ActionKind::Raise, std::uint64_t{9}}));
  EXPECT_EQ(guest_.performed[2].first, ActionKind::Breakpoint);
  EXPECT_EQ(guest_.performed[3].first, ActionKind::Panic);
  EXPECT_TRUE(engine_->take_quiescent().records.empty());
}

TEST_F(ActionsTest, SnapshotKeepsTheVcpuUntilItsRecordIsRead) {
  Action snapshot = action(ActionKind::Snapshot, {constant(5)});
  snapshot.format = "%d.core";
  start(program({clause({snapshot})}), {kProbe});
  fire(kProbe);

  EXPECT_EQ(guest_.kept, 1u);
  const TraceData trace_data = engine_->take_quiescent();
  ASSERT_EQ(trace_data.records.size(), 1u);
  EXPECT_EQ(number(trace_data.records[0], 0), 5);
}

TEST_F(ActionsTest, WhatTheMachineCannotDoIsAFault) {
  auto verified = verify_program(program({clause({action(ActionKind::Stop, {})})}));
  ASSERT_TRUE(verified);
  Engine engine(std::move(*verified), {}, 1);
  engine.enable(0, kProbe, {});
  engine.fire(kProbe, FireRecord{}, no_guest_context());

  const TraceData trace_data = engine.take_quiescent();

  ASSERT_EQ(trace_data.faults.size(), 1u);
  EXPECT_EQ(trace_data.faults[0].fault.kind, FaultKind::IllegalOperation);
  EXPECT_EQ(trace_data.faults[0].fault.pc, kNoPc);
  EXPECT_EQ(trace_data.faults[0].action, 1u);
}

TEST_F(ActionsTest, ChillMayTakeHalfOfEachSecondOfAVcpu) {
  constexpr std::uint64_t kMs = 1'000'000;
  start(program({clause({action(ActionKind::Chill, {builtin(Builtin::Arg0)})})}), {kProbe});
  const auto chill = [&](std::uint64_t at, std::uint64_t duration, std::uint32_t vcpu = 0) {
    guest_.arguments[0] = duration * kMs;
    guest_.waited = 0;
    fire(kProbe, at * kMs, vcpu);
    return guest_.waited / kMs;
  };
  EXPECT_EQ(chill(5000, 300), 300u);
  EXPECT_EQ(chill(5400, 201), 0u) << "501 in one second";
  EXPECT_EQ(chill(5400, 200), 200u);
  EXPECT_EQ(chill(5999, 1), 0u);
  EXPECT_EQ(chill(5999, 500, 1), 500u) << "another vCPU";
  EXPECT_EQ(chill(6000, 500), 500u) << "the next interval";
  EXPECT_EQ(chill(8000, ~0ull / kMs), 0u);

  const TraceData trace_data = engine_->take_quiescent();

  ASSERT_EQ(trace_data.faults.size(), 3u);
  EXPECT_EQ(trace_data.faults[0].fault.kind, FaultKind::IllegalOperation);
}

TEST_F(ActionsTest, ActionsAfterExitInTheSameClauseStillRun) {
  start(program({clause({action(ActionKind::Exit, {constant(3)}),
                         action(ActionKind::Trace, {constant(8)}),
                         action(ActionKind::Raise, {constant(2)})})}),
        {kProbe});
  fire(kProbe);

  const TraceData trace_data = engine_->take_quiescent();

  ASSERT_EQ(trace_data.records.size(), 1u);
  EXPECT_EQ(number(trace_data.records[0], 1), 8);
  EXPECT_EQ(guest_.performed_count, 1u);
  EXPECT_EQ(engine_->exit_status(), 3);
}

}  // namespace
}  // namespace ringside::dif
