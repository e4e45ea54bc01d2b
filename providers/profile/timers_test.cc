#include "providers/profile/timers.h"

#include <gtest/gtest.h>

namespace ringside::providers {
namespace {

using Samples = TimerSchedule::Samples;

const EnabledTimer kFast{dif::ProbeId{10}, TimerKind::Tick, 100};
const EnabledTimer kSlow{dif::ProbeId{11}, TimerKind::Profile, 250};

std::vector<std::uint32_t> run(TimerSchedule& schedule, std::uint64_t now) {
  std::vector<std::uint32_t> fired;
  schedule.run(
      now, [&](const EnabledTimer& timer, std::uint64_t) { fired.push_back(timer.probe.value); });
  return fired;
}

TEST(TimerSchedule, FiresNothingBeforeItIsOpened) {
  TimerSchedule schedule(std::vector{kFast}, Samples::Pause);

  EXPECT_EQ(schedule.next_deadline(), UINT64_MAX);
  EXPECT_TRUE(run(schedule, 1'000'000).empty());
}

TEST(TimerSchedule, FiresOneIntervalAfterOpening) {
  TimerSchedule schedule(std::vector{kFast, kSlow}, Samples::Pause);
  schedule.open(1000);

  EXPECT_EQ(schedule.next_deadline(), 1100u);
  EXPECT_TRUE(run(schedule, 1099).empty());
  EXPECT_EQ(run(schedule, 1100), (std::vector<std::uint32_t>{10}));
  EXPECT_EQ(run(schedule, 1250), (std::vector<std::uint32_t>{10, 11})) << "earliest first";
}

TEST(TimerSchedule, ALateFiringDoesNotShiftTheLaterOnes) {
  TimerSchedule schedule(std::vector{kFast}, Samples::Pause);
  schedule.open(0);

  EXPECT_EQ(run(schedule, 170).size(), 1u);

  EXPECT_EQ(schedule.next_deadline(), 200u);
}

TEST(TimerSchedule, ATickThatIsALittleLateIsMadeUpFor) {
  TimerSchedule schedule(std::vector{kFast}, Samples::Pause);
  schedule.open(0);

  std::vector<std::uint64_t> late;
  schedule.run(350, [&](const EnabledTimer&, std::uint64_t by) { late.push_back(by); });

  EXPECT_EQ(late, (std::vector<std::uint64_t>{250, 150, 50}));
  EXPECT_EQ(schedule.next_deadline(), 400u);
}

TEST(TimerSchedule, ALongStallIsNotAnsweredWithABurst) {
  TimerSchedule schedule(std::vector{kFast}, Samples::Pause);
  schedule.open(0);

  unsigned fired = 0;
  const std::uint64_t skipped = schedule.run(TimerSchedule::kMadeUpFor + 150,
                                             [&](const EnabledTimer&, std::uint64_t) { ++fired; });

  EXPECT_EQ(fired, 1u);
  EXPECT_EQ(fired + skipped, (TimerSchedule::kMadeUpFor + 150) / 100);
  EXPECT_EQ(schedule.next_deadline(), TimerSchedule::kMadeUpFor + 200);
}

TEST(TimerSchedule, OneRunFiresABoundedNumberAndTheNextGoesOn) {
  TimerSchedule schedule(std::vector{kFast}, Samples::Pause);
  schedule.open(0);

  EXPECT_EQ(run(schedule, 100'000).size(), TimerSchedule::kMostAtOnce);
  EXPECT_EQ(schedule.next_deadline(), (TimerSchedule::kMostAtOnce + 1) * 100u);
}

TEST(TimerSchedule, SamplesThatPauseTheMachineAreSkippedNotMadeUpFor) {
  TimerSchedule pausing(std::vector{kSlow}, Samples::Pause);
  TimerSchedule free(std::vector{kSlow}, Samples::Free);
  pausing.open(0);
  free.open(0);

  unsigned fired = 0;
  EXPECT_EQ(pausing.run(1050, [&](const EnabledTimer&, std::uint64_t) { ++fired; }), 0u)
      << "the sampler counts those";
  EXPECT_EQ(fired, 1u);
  EXPECT_EQ(pausing.next_deadline(), 1250u);
  EXPECT_EQ(run(free, 1050).size(), 4u);
}

TEST(TimerSchedule, TimersOfOneMomentFireInTheOrderOfEnabling) {
  const EnabledTimer twin{dif::ProbeId{12}, TimerKind::Tick, 100};
  TimerSchedule schedule(std::vector{twin, kFast}, Samples::Pause);
  schedule.open(0);

  EXPECT_EQ(run(schedule, 210), (std::vector<std::uint32_t>{12, 10, 12, 10}));
}

TEST(TimerSchedule, ThoseThatStayGoOnAndTheOthersBegin) {
  TimerSchedule former(std::vector{kFast, kSlow}, Samples::Free);
  former.open(0);
  EXPECT_EQ(run(former, 170).size(), 1u);
  const EnabledTimer fresh{dif::ProbeId{12}, TimerKind::Tick, 60};
  TimerSchedule next(std::vector{fresh, kFast}, former);

  EXPECT_FALSE(former.has_just(std::vector{fresh, kFast}));
  EXPECT_TRUE(next.has_just(std::vector{fresh, kFast}));
  EXPECT_EQ(next.next_deadline(), UINT64_MAX) << "until it takes over";
  next.take_over(former, 170);

  EXPECT_TRUE(run(next, 199).empty());
  EXPECT_EQ(run(next, 200), (std::vector<std::uint32_t>{10})) << "it kept its phase";
  EXPECT_EQ(run(next, 230), (std::vector<std::uint32_t>{12})) << "170 and one interval";
  EXPECT_EQ(run(next, 250), (std::vector<std::uint32_t>{})) << "the slow one has gone";
}

TEST(TimerSchedule, OneThatComesBackBeginsAnew) {
  TimerSchedule both(std::vector{kFast, kSlow}, Samples::Free);
  both.open(0);
  TimerSchedule one(std::vector{kSlow}, both);
  one.take_over(both, 90);
  TimerSchedule again(std::vector{kSlow, kFast}, one);
  again.take_over(one, 150);

  EXPECT_EQ(again.next_deadline(), 250u);
  EXPECT_EQ(run(again, 250), (std::vector<std::uint32_t>{11, 10}));
}

TEST(TimerSchedule, AnIntervalBeyondTheEndOfTimeNeverFires) {
  TimerSchedule schedule(
      std::vector{EnabledTimer{dif::ProbeId{1}, TimerKind::Tick, UINT64_MAX / 2}}, Samples::Pause);
  schedule.open(UINT64_MAX - 10);

  EXPECT_EQ(schedule.next_deadline(), UINT64_MAX);
  EXPECT_TRUE(run(schedule, UINT64_MAX - 1).empty());
}

}  // namespace
}  // namespace ringside::providers
