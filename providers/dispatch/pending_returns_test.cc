#include "providers/dispatch/pending_returns.h"

#include <gtest/gtest.h>

#include <vector>

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
