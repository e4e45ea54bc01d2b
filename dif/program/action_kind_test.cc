// The table of actions agrees with itself and with the numbers that DTrace publishes.
#include "dif/program/action_kind.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace ringside::dif {
namespace {

std::vector<ActionKind> all_kinds() {
  return {
#define DIF_ACTION(kind, number, text, least, most, changes, records, build, verify, fire, show) \
  ActionKind::kind,
#define DIF_ACTION_FORM(kind, number, changes, records, verify, fire, show) ActionKind::kind,
#include "dif/program/actions.def"
  };
}

TEST(ActionTable, EachKindHasANumberOfItsOwn) {
  std::set<std::uint16_t> numbers;

  for (const ActionKind kind : all_kinds()) {
    const ActionInfo& info = action_info(kind);
    EXPECT_EQ(info.kind, kind);
    EXPECT_TRUE(numbers.insert(info.number).second) << info.number;
    EXPECT_EQ(find_action(info.number), kind);
  }
  EXPECT_FALSE(find_action(0));
  EXPECT_FALSE(find_action(kFirstPrivateAction - 1));
}

TEST(ActionTable, HasDtracesNumbers) {
  EXPECT_EQ(action_info(ActionKind::Trace).number, 1);
  EXPECT_EQ(action_info(ActionKind::Tracemem).number, 6);
  EXPECT_EQ(action_info(ActionKind::Freopen).number, 0x204);
  EXPECT_EQ(action_info(ActionKind::Chill).number, 0x503);
  EXPECT_EQ(action_info(ActionKind::Discard).number, 0x603);
  EXPECT_GE(action_info(ActionKind::Setopt).number, kFirstPrivateAction);
}

TEST(ActionTable, EachNameIsKnownOnce) {
  std::set<std::string_view> names;

  for (const ActionKind kind : all_kinds()) {
    const ActionInfo& info = action_info(kind);
    if (info.name.empty()) continue;
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    const auto prototype = action_prototype(info.name);
    ASSERT_TRUE(prototype) << info.name;
    EXPECT_EQ(prototype->least, info.least);
    EXPECT_FALSE(find_aggregating(info.name)) << info.name;
  }
  EXPECT_FALSE(action_prototype(""));
  EXPECT_FALSE(action_prototype("count"));
}

TEST(ActionTable, OnlyActionsThatWaitForTheConsumerRecordData) {
  EXPECT_TRUE(records_data(ActionKind::Ftruncate));
  EXPECT_TRUE(dumps_memory(ActionKind::TracememDynamic));
  EXPECT_TRUE(records_data(ActionKind::Pcap));
  EXPECT_FALSE(is_order(ActionKind::Pcap)) << "a packet that is lost is data that is missing";
  EXPECT_FALSE(records_data(ActionKind::Aggregate));
  EXPECT_FALSE(records_data(ActionKind::Raise));
}

TEST(AggregatingTable, KnowsFunctionsByNameAndKind) {
  const auto known = find_aggregating("lquantize");

  ASSERT_TRUE(known);
  EXPECT_EQ(known->function, AggregateFunction::Lquantize);
  EXPECT_EQ(known->result, AggregatingInfo::Result::Buckets);
  EXPECT_EQ(aggregating_info(AggregateFunction::Stddev).name, "stddev");
  EXPECT_FALSE(find_aggregating("printf"));
}

}  // namespace
}  // namespace ringside::dif
