#include "vmm/pauses.h"

#include <gtest/gtest.h>

namespace ringside::vmm {
namespace {

using std::chrono::milliseconds;

PauseLog::Time at(int ms) {
  return PauseLog::Time(milliseconds(ms));
}

TEST(PauseLog, CountsSumsAndKeepsTheLongest) {
  PauseLog log;
  EXPECT_EQ(log.pauses().describe(), "0 times, for 0.0 ms in all, for 0.0 ms at the longest");
  log.begin(at(10));
  log.end(at(17));
  EXPECT_EQ(log.pauses().describe(), "1 time, for 7.0 ms in all, for 7.0 ms at the longest");
  log.begin(at(30));
  log.end(at(32));
  EXPECT_EQ(log.pauses().count, 2U);
  EXPECT_EQ(log.pauses().total, milliseconds(9));
  EXPECT_EQ(log.pauses().longest, milliseconds(7));
}

TEST(PauseLog, OverlappingPausesAreOne) {
  PauseLog log;
  log.begin(at(10));
  log.begin(at(12));
  log.end(at(13));
  EXPECT_EQ(log.pauses().count, 0U);  // the guest still stands
  log.begin(at(14));
  log.end(at(20));
  log.end(at(25));
  EXPECT_EQ(log.pauses().count, 1U);
  EXPECT_EQ(log.pauses().total, milliseconds(15));
}

}  // namespace
}  // namespace ringside::vmm
