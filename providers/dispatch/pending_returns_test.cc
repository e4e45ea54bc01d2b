#include "providers/dispatch/pending_returns.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "providers/dispatch/keyed_slots.h"

namespace ringside::providers {
namespace {

constexpr std::uint64_t kBytesOfStack = 16 << 10;
constexpr std::uint64_t kPendingStack = 0xffff'c900'0001'0000,
                        kInterruptStack = 0xffff'c900'0100'0000;
constexpr std::uint64_t kSomeTask = 0xffff'8880'0000'1000;
/// Functions: f jumps to g, g jumps to h.
constexpr GuestVirt kFunctionF{0x1000}, kFunctionG{0x2000}, kFunctionH{0x3000},
    kFunctionOther{0x4000};

class PendingTest : public ::testing::Test {
 protected:
  static TaskMoment at(std::uint64_t offset, std::uint64_t task = kSomeTask, std::int32_t tid = 7) {
    return {task, tid, kPendingStack + offset};
  }
  static Binding jump(std::uint32_t probe, const TailCall& call) {
    return {.probe = {probe}, .role = Role::Waits, .site = probe * 16, .tail_call = &call};
  }
  bool wait(const TaskMoment& moment, std::uint32_t probe, const TailCall& call) {
    const Binding one = jump(probe, call);
    return pending_.wait(moment, {&one, 1});
  }
  /// At a way out where probes 0 to 99 end.
  PendingReturns::Ended end(const TaskMoment& moment) {
    std::vector<dif::ProbeId> all;
    for (std::uint32_t n = 0; n < 100; ++n) all.push_back({n});
    return pending_.end(moment, all, Role::Ends);
  }
  static std::vector<std::uint32_t> probes_of(const PendingReturns::Ended& ended) {
    std::vector<std::uint32_t> probes;
    for (const auto& one : ended.all()) probes.push_back(one.probe.value);
    return probes;
  }
  std::vector<std::uint32_t> ended(const TaskMoment& moment) { return probes_of(end(moment)); }
  using Probes = std::vector<std::uint32_t>;

  const TailCall f_{kFunctionF, {kFunctionG, kFunctionH}}, g_{kFunctionG, {kFunctionH}},
      other_{kFunctionOther, {kFunctionH}};
  PendingReturns pending_{kBytesOfStack};
};

TEST_F(PendingTest, EndOnceAtTheSamePlaceOfTheirTasksStack) {
  ASSERT_TRUE(wait(at(0x800), 1, f_));

  EXPECT_TRUE(ended(at(0x7f8)).empty()) << "a call of what it jumped to";
  EXPECT_TRUE(ended(at(0x800, kSomeTask + 0x2000, 8)).empty()) << "another task";
  EXPECT_EQ(ended(at(0x800)), (Probes{1}));
  EXPECT_TRUE(ended(at(0x800)).empty());
}

TEST_F(PendingTest, CarryTheirProbesSite) {
  ASSERT_TRUE(wait(at(0x800), 3, f_));

  const auto all = end(at(0x800));

  ASSERT_EQ(all.count, 1u);
  EXPECT_EQ(all.returns[0].site, 48u);
  EXPECT_EQ(all.returns[0].tail_call, &f_);
}

TEST_F(PendingTest, OfAChainTheLastEndsFirst) {
  ASSERT_TRUE(wait(at(0x800), 1, f_));
  ASSERT_TRUE(wait(at(0x800), 2, g_));

  EXPECT_EQ(ended(at(0x800)), (Probes{2, 1}));
}

TEST_F(PendingTest, SeveralProbesOfOneJumpEndTogether) {
  const Binding both[] = {jump(1, f_), jump(2, f_)};
  ASSERT_TRUE(pending_.wait(at(0x800), both));

  EXPECT_EQ(ended(at(0x800)), (Probes{2, 1}));
}

TEST_F(PendingTest, AJumpThatOneIsNotFollowedThroughEndsThatOneAlone) {
  const std::vector<dif::ProbeId> first{{1}};
  ASSERT_TRUE(wait(at(0x800), 1, f_));
  ASSERT_TRUE(wait(at(0x800), 2, g_));

  EXPECT_EQ(probes_of(pending_.end(at(0x800), first, Role::EndsUnknown)), (Probes{1}));
  EXPECT_EQ(ended(at(0x800)), (Probes{2}));
}

TEST_F(PendingTest, AfterAReturnNothingWaitsThere) {
  const std::vector<dif::ProbeId> first{{1}};
  ASSERT_TRUE(wait(at(0x800), 1, f_));
  ASSERT_TRUE(wait(at(0x800), 2, g_));

  EXPECT_EQ(probes_of(pending_.end(at(0x800), first, Role::Ends)), (Probes{1}));
  EXPECT_TRUE(ended(at(0x800)).empty()) << "it was disabled meanwhile";
}

TEST_F(PendingTest, OfNestedCallsEachHasItsPlace) {
  ASSERT_TRUE(wait(at(0x800), 1, f_));
  ASSERT_TRUE(wait(at(0x700), 2, other_));
  ASSERT_TRUE(wait(at(0x600), 3, f_));

  EXPECT_EQ(ended(at(0x600)), (Probes{3}));
  EXPECT_EQ(ended(at(0x700)), (Probes{2}));
  EXPECT_EQ(ended(at(0x800)), (Probes{1}));
}

TEST_F(PendingTest, OneThatNeverCameGoesWhenItsTaskIsFurtherUp) {
  ASSERT_TRUE(wait(at(0x700), 1, f_));
  ASSERT_TRUE(wait(at(0x800), 2, other_)) << "the frame at 0x700 is left";

  EXPECT_TRUE(ended(at(0x700)).empty());
  EXPECT_EQ(ended(at(0x800)), (Probes{2}));
}

TEST_F(PendingTest, OneThatNeverCameYieldsToAnotherFunctionsJump) {
  ASSERT_TRUE(wait(at(0x800), 1, g_));
  ASSERT_TRUE(wait(at(0x800), 2, other_)) << "g does not lead there";
  EXPECT_EQ(ended(at(0x800)), (Probes{2}));

  ASSERT_TRUE(wait(at(0x800), 1, f_));
  ASSERT_TRUE(wait(at(0x800), 1, f_)) << "the same function again: the first never returned";
  EXPECT_EQ(ended(at(0x800)), (Probes{1}));
}

TEST_F(PendingTest, ANewTaskInTheSamePlaceHasNothing) {
  ASSERT_TRUE(wait(at(0x800), 1, f_));

  EXPECT_TRUE(ended(at(0x800, kSomeTask, 8)).empty());
  EXPECT_TRUE(ended(at(0x800)).empty()) << "it is forgotten for good";
}

TEST_F(PendingTest, AnInterruptOnAStackAboveLeavesThemAlone) {
  const TaskMoment interrupt{kSomeTask, 7, kInterruptStack + 0x3000};
  ASSERT_TRUE(wait(at(0x800), 1, f_));
  ASSERT_TRUE(wait(interrupt, 2, other_));

  EXPECT_EQ(ended(interrupt), (Probes{2}));
  EXPECT_EQ(ended(at(0x800)), (Probes{1}));
}

TEST_F(PendingTest, MoreOfATaskThanThereIsRoomForIsRefused) {
  for (std::uint32_t n = 0; n < PendingReturns::kMostOfTask; ++n) {
    ASSERT_TRUE(wait(at(0x3000 - n * 16), n, f_));
  }

  EXPECT_FALSE(wait(at(0x100), 99, f_));

  EXPECT_EQ(ended(at(0x3000 - 15 * 16)), (Probes{15}));
  EXPECT_TRUE(wait(at(0x100), 99, f_)) << "there is room again";
}

TEST_F(PendingTest, AJumpWaitsWithAllOfItsProbesOrNone) {
  std::vector<Binding> all;
  EXPECT_FALSE(pending_.wait(at(0x800), all)) << "there is nothing to wait for";
  for (std::uint32_t n = 0; n < PendingReturns::kMostOfTask; ++n) all.push_back(jump(n, f_));
  ASSERT_TRUE(pending_.wait(at(0x800), all));
  EXPECT_EQ(end(at(0x800)).count, PendingReturns::kMostOfTask);

  all.push_back(jump(99, f_));
  EXPECT_FALSE(pending_.wait(at(0x800), all));
  EXPECT_TRUE(ended(at(0x800)).empty());
  ASSERT_TRUE(wait(at(0x800), 1, f_));
  all.pop_back();
  EXPECT_FALSE(pending_.wait(at(0x700), all)) << "one too many of the task";
  EXPECT_TRUE(ended(at(0x700)).empty());
  EXPECT_EQ(ended(at(0x800)), (Probes{1}));
}

TEST_F(PendingTest, AStackEndsWhereTheNextOneBegins) {
  ASSERT_TRUE(wait({kSomeTask, 7, kPendingStack + 8}, 1, f_));
  ASSERT_TRUE(wait({kSomeTask, 7, kPendingStack + kBytesOfStack}, 2, other_)) << "another stack";
  EXPECT_EQ(ended({kSomeTask, 7, kPendingStack + kBytesOfStack}), (Probes{2}));
  EXPECT_EQ(ended({kSomeTask, 7, kPendingStack + 8}), (Probes{1}));

  ASSERT_TRUE(wait({kSomeTask, 7, kPendingStack + 8}, 1, f_));
  ASSERT_TRUE(wait({kSomeTask, 7, kPendingStack + kBytesOfStack - 8}, 2, other_));
  EXPECT_TRUE(ended({kSomeTask, 7, kPendingStack + 8}).empty()) << "that frame is left";
}

TEST(KeyedSlots, KeepAValueForEachKey) {
  KeyedSlots<int> slots(4 * KeyedSlots<int>::kWays);
  for (std::uint64_t key = 2; key < 12; ++key) {
    EXPECT_EQ(slots.find(key), nullptr);
    const auto claimed = slots.claim(key);
    ASSERT_NE(claimed.slot, nullptr);
    EXPECT_FALSE(claimed.displaced);
    claimed.slot->value = static_cast<int>(10 * key);
    slots.keep(*claimed.slot, key);
  }
  for (std::uint64_t key = 2; key < 12; ++key) {
    auto* const slot = slots.find(key);
    ASSERT_NE(slot, nullptr) << key;
    EXPECT_EQ(slot->value, static_cast<int>(10 * key));
    EXPECT_EQ(slots.find(key), nullptr) << "another thread holds it";
    slots.free(*slot);
    EXPECT_EQ(slots.find(key), nullptr);
  }
}

/// The ways of one place: all keys of a table of its smallest size.
TEST(KeyedSlots, GiveTheWayThatWasKeptLongestToANewKeyWhenAllAreTaken) {
  constexpr std::uint64_t kWays = KeyedSlots<int>::kWays;
  KeyedSlots<int> slots(kWays);
  std::set<const void*> ways;
  for (std::uint64_t key = 100; key < 100 + kWays; ++key) {
    const auto claimed = slots.claim(key);
    ASSERT_NE(claimed.slot, nullptr);
    EXPECT_FALSE(claimed.displaced) << key;
    ways.insert(claimed.slot);
    slots.keep(*claimed.slot, key);
  }
  EXPECT_EQ(ways.size(), kWays);
  slots.keep(*slots.find(100), 100);  // used again: the next one is the oldest now

  const auto claimed = slots.claim(200);

  ASSERT_NE(claimed.slot, nullptr);
  EXPECT_TRUE(claimed.displaced);
  slots.keep(*claimed.slot, 200);
  EXPECT_EQ(slots.find(101), nullptr);
  for (const std::uint64_t key :
       {std::uint64_t{100}, std::uint64_t{102}, 99 + kWays, std::uint64_t{200}}) {
    EXPECT_NE(slots.find(key), nullptr) << key;
  }
}

TEST(KeyedSlots, GiveNoneWhereOthersHoldThemAll) {
  constexpr std::uint64_t kWays = KeyedSlots<int>::kWays;
  KeyedSlots<int> slots(kWays);
  for (std::uint64_t key = 100; key < 100 + kWays; ++key) {
    ASSERT_NE(slots.claim(key).slot, nullptr);
  }

  EXPECT_EQ(slots.claim(200).slot, nullptr);
}

TEST(KeyedSlots, KnowNoKeyThatStandsForAFreeOrAHeldOne) {
  KeyedSlots<int> slots(KeyedSlots<int>::kWays);
  for (const std::uint64_t key : {0, 1}) {
    EXPECT_EQ(slots.find(key), nullptr);
    EXPECT_EQ(slots.claim(key).slot, nullptr);
  }
}

TEST_F(PendingTest, OfTooManyTasksTheOldestAreCountedAsLost) {
  constexpr std::uint64_t kManyTasks = 20'000;
  for (std::uint64_t n = 0; n < kManyTasks; ++n)
    ASSERT_TRUE(wait(at(0x800, kSomeTask + n * 64), 1, f_));

  std::uint64_t found = 0;
  for (std::uint64_t n = 0; n < kManyTasks; ++n)
    found += ended(at(0x800, kSomeTask + n * 64)).size();

  EXPECT_GT(found, 1000u);
  EXPECT_EQ(pending_.displaced(), kManyTasks - found);
}

}  // namespace
}  // namespace ringside::providers
