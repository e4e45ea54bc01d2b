#include "vmm/stop_times.h"

#include <gtest/gtest.h>

namespace ringside::vmm {
namespace {

using std::chrono::milliseconds;

StopTimes::Time at(int ms) {
  return StopTimes::Time(milliseconds(ms));
}

TEST(StopTimes, CountsOurPausesSumsThemAndKeepsTheLongest) {
  StopTimes stops;
  EXPECT_EQ(stops.pauses().describe(), "0 times, for 0.0 ms in all, for 0.0 ms at the longest");
  stops.begin_pause(1, at(10));
  stops.end_pause(2, at(17));
  EXPECT_EQ(stops.pauses().describe(), "1 time, for 7.0 ms in all, for 7.0 ms at the longest");
  stops.begin_pause(1, at(30));
  stops.end_pause(2, at(32));
  EXPECT_EQ(stops.pauses().count, 2U);
  EXPECT_EQ(stops.pauses().total, milliseconds(9));
  EXPECT_EQ(stops.pauses().longest, milliseconds(7));
}

TEST(StopTimes, CountsPausesThatOverlapOnce) {
  StopTimes stops;
  stops.begin_pause(1, at(10));
  stops.begin_pause(1, at(12));
  stops.end_pause(2, at(13));
  EXPECT_EQ(stops.pauses().count, 0U);  // the guest still stands
  stops.begin_pause(1, at(14));
  stops.end_pause(2, at(20));
  stops.end_pause(2, at(25));
  EXPECT_EQ(stops.pauses().count, 1U);
  EXPECT_EQ(stops.pauses().total, milliseconds(15));
}

TEST(StopTimes, CountsStopsThatOverlapOnce) {
  StopTimes stop_times;
  stop_times.begin(1'000);
  stop_times.begin(1'500);
  EXPECT_EQ(stop_times.ticks(1'600), 600U);
  stop_times.end(1'700);
  EXPECT_EQ(stop_times.version(), 1U);
  stop_times.end(2'000);

  EXPECT_EQ(stop_times.version(), 2U);
  EXPECT_EQ(stop_times.ticks(9'000), 1'000U);
  stop_times.end(9'000);  // of none
  stop_times.begin(10'000);
  EXPECT_EQ(stop_times.ticks(10'001), 1'001U);
}

TEST(StopTimes, OurPausesAreStopsAndTheOwnersStopsAreNoPauses) {
  StopTimes stops;
  stops.begin_pause(1'000, at(1));
  EXPECT_EQ(stops.ticks(1'200), 200U);
  stops.begin(1'100);
  stops.end_pause(1'300, at(2));
  EXPECT_EQ(stops.version(), 1U) << "its owner still stops it";
  stops.end(1'500);

  EXPECT_EQ(stops.ticks(9'000), 500U);
  EXPECT_EQ(stops.pauses().count, 1U);
  EXPECT_EQ(stops.pauses().total, milliseconds(1));
}

}  // namespace
}  // namespace ringside::vmm
