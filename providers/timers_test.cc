#include "providers/timers.h"

#include <gtest/gtest.h>

namespace ringside::providers {
namespace {

const EnabledTimer kFast{dif::ProbeId{10}, TimerKind::Tick, 100};
const EnabledTimer kSlow{dif::ProbeId{11}, TimerKind::Profile, 250};

std::vector<std::uint32_t> run(TimerSchedule& schedule, std::uint64_t now) {
  std::vector<std::uint32_t> fired;
  schedule.run(now, [&](const EnabledTimer& timer) { fired.push_back(timer.probe.value); });
  return fired;
}

TEST(TimerSchedule, FiresNothingBeforeItIsOpened) {
  TimerSchedule schedule(std::vector{kFast});

  EXPECT_EQ(schedule.next_deadline(), UINT64_MAX);
  EXPECT_TRUE(run(schedule, 1'000'000).empty());
}

TEST(TimerSchedule, FiresOneIntervalAfterOpening) {
  TimerSchedule schedule(std::vector{kFast, kSlow});
  schedule.open(1000);

  EXPECT_EQ(schedule.next_deadline(), 1100u);
  EXPECT_TRUE(run(schedule, 1099).empty());
  EXPECT_EQ(run(schedule, 1100), (std::vector<std::uint32_t>{10}));
  EXPECT_EQ(run(schedule, 1250), (std::vector<std::uint32_t>{10, 11}));
}

TEST(TimerSchedule, ALateFiringDoesNotShiftTheLaterOnes) {
  TimerSchedule schedule(std::vector{kFast});
  schedule.open(0);

  EXPECT_EQ(run(schedule, 170).size(), 1u);

  EXPECT_EQ(schedule.next_deadline(), 200u);
}

TEST(TimerSchedule, MissedIntervalsAreSkippedNotMadeUpFor) {
  TimerSchedule schedule(std::vector{kFast});
  schedule.open(0);

  EXPECT_EQ(run(schedule, 1050).size(), 1u);

  EXPECT_EQ(schedule.next_deadline(), 1100u);
}

TEST(TimerSchedule, AnIntervalBeyondTheEndOfTimeNeverFires) {
  TimerSchedule schedule(
      std::vector{EnabledTimer{dif::ProbeId{1}, TimerKind::Tick, UINT64_MAX / 2}});
  schedule.open(UINT64_MAX - 10);

  EXPECT_EQ(schedule.next_deadline(), UINT64_MAX);
  EXPECT_TRUE(run(schedule, UINT64_MAX - 1).empty());
}

}  // namespace
}  // namespace ringside::providers
