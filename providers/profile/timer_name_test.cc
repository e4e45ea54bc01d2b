#include "providers/profile/timer_name.h"

#include <gtest/gtest.h>

#include <string>

namespace ringside::providers {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

TimerName parsed(const std::string& name) {
  const auto timer = parse_timer_name(name);
  EXPECT_TRUE(timer.has_value()) << name << ": " << timer.error().message;
  return timer.value_or(TimerName());
}

ErrorCode refused(const std::string& name) {
  const auto timer = parse_timer_name(name);
  EXPECT_FALSE(timer.has_value()) << name;
  return timer ? ErrorCode::Io : timer.error().code;
}

TEST(TimerName, WithoutSuffixIsARate) {
  EXPECT_EQ(parsed("profile-97"), (TimerName{TimerKind::Profile, kSecond / 97}));
  EXPECT_EQ(parsed("tick-1"), (TimerName{TimerKind::Tick, kSecond}));
  EXPECT_EQ(parsed("tick-20hz"), (TimerName{TimerKind::Tick, kSecond / 20}));
}

TEST(TimerName, EverySuffixMeansItsUnit) {
  const std::pair<const char*, std::uint64_t> units[] = {
      {"tick-200000ns", 200'000},   {"tick-200000nsec", 200'000},   {"tick-200us", 200'000},
      {"tick-200usec", 200'000},    {"tick-3ms", 3'000'000},        {"tick-3msec", 3'000'000},
      {"tick-5s", 5 * kSecond},     {"tick-5sec", 5 * kSecond},     {"tick-2m", 120 * kSecond},
      {"tick-2min", 120 * kSecond}, {"tick-1h", 3600 * kSecond},    {"tick-1hour", 3600 * kSecond},
      {"tick-1d", 86400 * kSecond}, {"tick-1day", 86400 * kSecond},
  };
  for (const auto& [name, interval] : units) EXPECT_EQ(parsed(name).interval, interval) << name;
}

TEST(TimerName, FiveThousandASecondIsTheLimit) {
  EXPECT_EQ(parsed("tick-5000hz").interval, kShortestInterval);

  EXPECT_EQ(refused("tick-5001"), ErrorCode::Usage);
  EXPECT_EQ(refused("profile-199us"), ErrorCode::Usage);
  EXPECT_EQ(parsed("profile-4999").interval, kSecond / 4999);
}

TEST(TimerName, ZeroOverflowAndUnknownSuffixesAreUsageErrors) {
  EXPECT_EQ(refused("tick-0"), ErrorCode::Usage);
  EXPECT_EQ(refused("tick-0s"), ErrorCode::Usage);
  EXPECT_EQ(refused("tick-99999999999999999999s"), ErrorCode::Usage);
  EXPECT_EQ(refused("tick-18446744073709551615d"), ErrorCode::Usage);
  EXPECT_EQ(refused("tick-1parsec"), ErrorCode::Usage);
  EXPECT_EQ(refused("tick-1.5s"), ErrorCode::Usage);
}

TEST(TimerName, OtherNamesAreNoTimers) {
  EXPECT_EQ(refused("entry"), ErrorCode::NotFound);
  EXPECT_EQ(refused(""), ErrorCode::NotFound);
  EXPECT_EQ(refused("tick-"), ErrorCode::NotFound);
  EXPECT_EQ(refused("profile-fast"), ErrorCode::NotFound);
}

}  // namespace
}  // namespace ringside::providers
