#include "providers/profile/sample_pace.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ringside::providers {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

TEST(SamplePace, HasNoLimitUnlessToldSo) {
  SamplePace pace;

  EXPECT_TRUE(pace.may_begin(0, 0, kMs));
  pace.ended(0, 10 * kMs);
  EXPECT_TRUE(pace.may_begin(10 * kMs, 0, kMs));

  EXPECT_EQ(pace.left_out(), 0u);
  EXPECT_FALSE(pace.slowed());
}

TEST(SamplePace, LetsTheMachineRunForTheRestOfItsTime) {
  SamplePace pace;
  pace.limit(10);

  ASSERT_TRUE(pace.may_begin(0, 0, 2 * kMs));
  pace.ended(0, kMs);  // so 9 ms are the guest's

  EXPECT_FALSE(pace.may_begin(2 * kMs, 0, 2 * kMs));
  EXPECT_FALSE(pace.may_begin(9 * kMs, 0, 2 * kMs));
  EXPECT_TRUE(pace.may_begin(10 * kMs, 0, 2 * kMs));
  EXPECT_EQ(pace.left_out(), 2u);
  EXPECT_FALSE(pace.slowed()) << "two are a chance";
  EXPECT_FALSE(pace.lost_most());
}

/// A timer of 2 ms, for `seconds`, on a machine that takes `stand` ns for a sample.
void run(SamplePace& pace, std::uint64_t seconds, std::uint64_t stand) {
  std::uint64_t now = 0;
  for (std::uint64_t due = 2 * kMs; due < seconds * 1000 * kMs; due += 2 * kMs) {
    now = std::max(now, due);
    const std::uint64_t late = now - due;
    if (pace.may_begin(now, late, 2 * kMs)) {
      pace.ended(now, now + stand);
      now += stand;
    }
    due += late / (2 * kMs) * (2 * kMs);
  }
}

TEST(SamplePace, TellsALimitThatCostsMostSamples) {
  SamplePace pace;
  pace.limit(10);

  run(pace, 10, kMs);

  EXPECT_TRUE(pace.slowed());
  EXPECT_EQ(pace.left_out(), 3999u) << "of 5,000 one in 10 ms is taken";
}

TEST(SamplePace, BlamesASlowMachineForWhatIsItsOwn) {
  SamplePace pace;
  pace.limit(95);

  run(pace, 10, 20 * kMs);

  EXPECT_FALSE(pace.slowed());
  EXPECT_TRUE(pace.lost_most());
  EXPECT_GT(pace.left_out(), 4000u);
}

TEST(SamplePace, CountsWhatTheMachineWasTooSlowFor) {
  SamplePace pace;

  EXPECT_TRUE(pace.may_begin(100 * kMs, 7 * kMs, 2 * kMs));

  EXPECT_EQ(pace.left_out(), 3u);
  EXPECT_FALSE(pace.slowed()) << "that is not the limit's doing";
}

TEST(SamplePace, StandsAClockThatGoesBack) {
  SamplePace pace;
  pace.limit(1);

  pace.ended(100 * kMs, 50 * kMs);

  EXPECT_TRUE(pace.may_begin(50 * kMs, 0, kMs));
}

TEST(SamplePace, NamesAProbeThatAsksLessOften) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  SamplePace pace;
  EXPECT_EQ(pace.slower_probe(), "");

  pace.may_begin(0, 0, kSecond / 19);
  EXPECT_EQ(pace.slower_probe(), "");
  pace.may_begin(0, 0, kSecond / 97);
  EXPECT_EQ(pace.slower_probe(), "profile-19");
  pace.may_begin(0, 0, kSecond / 997);
  EXPECT_EQ(pace.slower_probe(), "profile-97");
  pace.may_begin(0, 0, kSecond);
  EXPECT_EQ(pace.slower_probe(), "profile-97") << "the one that asks most often";
}

}  // namespace
}  // namespace ringside::providers
