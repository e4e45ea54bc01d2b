// RunTimes: no more than has gone by, nothing lost, and one thread is not another.
#include "providers/context/run_times.h"

#include <gtest/gtest.h>

namespace ringside::providers {
namespace {

const RunTimes::Thread kOne{GuestVirt(0xffff'8880'0010'0000), 17};
const RunTimes::Thread kSuccessor{kOne.task, 18};  // in memory that the first one has left

TEST(RunTimes, AddsNoMoreThanHasGoneByOnTheTimeLine) {
  RunTimes times;

  EXPECT_EQ(times.show(kOne, 5'000, 100), 5'000u);
  EXPECT_EQ(times.show(kOne, 6'020, 1'100), 6'000u);
  EXPECT_EQ(times.show(kOne, 7'000, 2'100), 6'980u) << "less than has gone by is as it is";
  EXPECT_EQ(times.show(kOne, 7'100, 2'100), 6'980u);
}

TEST(RunTimes, AFiringWithoutATimeCountsInTheNextOnesBound) {
  RunTimes times;

  EXPECT_EQ(times.show(kOne, 1'000, 100), 1'000u);
  EXPECT_EQ(times.show(kOne, 1'400, std::nullopt), 1'400u);
  EXPECT_EQ(times.show(kOne, 2'500, 1'100), 2'000u);
  EXPECT_EQ(times.show(kOne, 3'200, std::nullopt), 2'700u);
  EXPECT_EQ(times.show(kOne, 3'200, 1'200), 2'700u) << "never less than before";
}

TEST(RunTimes, AnAccountThatIsBehindAddsNothingTwice) {
  RunTimes times;

  EXPECT_EQ(times.show(kOne, 1'000, 100), 1'000u);
  EXPECT_EQ(times.show(kOne, 900, std::nullopt), 1'000u);
  EXPECT_EQ(times.show(kOne, 1'100, 200), 1'100u);
}

TEST(RunTimes, LeavesOutTheTimeThatFiringsTook) {
  RunTimes times;

  times.waited(kOne, 999);
  EXPECT_EQ(times.show(kOne, 1'000, 100), 1'000u) << "nothing of before the first firing";
  times.waited(kOne, 300);
  times.waited(kOne, 200);
  times.waited(kSuccessor, 5'000);
  EXPECT_EQ(times.show(kOne, 2'000, 1'100), 1'500u);
  EXPECT_EQ(times.show(kOne, 2'100, 1'200), 1'600u) << "once";
  times.waited(kOne, 150);
  EXPECT_EQ(times.show(kOne, 2'200, 1'250), 1'600u) << "more than has gone by";
}

TEST(RunTimes, AThreadInAnothersMemoryBeginsAnew) {
  RunTimes times;

  EXPECT_EQ(times.show(kOne, 1'000'000, 100), 1'000'000u);
  EXPECT_EQ(times.show(kSuccessor, 30, 110), 30u);
  EXPECT_EQ(times.show(kSuccessor, 40, 120), 40u);
}

}  // namespace
}  // namespace ringside::providers
