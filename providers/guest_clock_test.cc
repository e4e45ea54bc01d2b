#include "providers/guest_clock.h"

#include <gtest/gtest.h>

namespace ringside::providers {
namespace {

// One tick is one nanosecond, so the numbers below are both.
GuestClock clock_of_1ghz() {
  return GuestClock(TickRate(1'000'000'000));
}
constexpr std::uint64_t kHost = 1'000'000'000'000;  // the host's TSC when the guest's is 0

TEST(TickRate, ConvertsWithinAPartInABillion) {
  const TickRate rate(2'400'000'000);

  EXPECT_EQ(rate.nanoseconds(0), 0u);
  EXPECT_NEAR(static_cast<double>(rate.nanoseconds(2'400'000'000)), 1e9, 1.0);
  EXPECT_NEAR(static_cast<double>(rate.nanoseconds(24'000'000'000'000'000)), 1e16, 1e7);
}

TEST(GuestClock, TrapIntervalsAreTheGuestsOwnHoweverLateTheHostLooks) {
  GuestClock clock = clock_of_1ghz();

  const std::uint64_t first = clock.trap_time(5'000, kHost + 505'000);  // seen 500 us late
  const std::uint64_t second = clock.trap_time(6'000, kHost + 6'100);   // seen at once

  EXPECT_EQ(second - first, 1'000u);
}

TEST(GuestClock, TheFirstTrapContinuesTheHostsTimeLine) {
  GuestClock clock = clock_of_1ghz();

  const std::uint64_t begin = clock.host_time(kHost + 1'000);
  const std::uint64_t trap = clock.trap_time(3'000, kHost + 3'200);

  EXPECT_NEAR(static_cast<double>(trap - begin), 2'200, 2) << "off by the latency of that trap";
}

TEST(GuestClock, HostTimesAreNeverEarlierThanTrapsAlreadySeen) {
  GuestClock clock = clock_of_1ghz();
  clock.trap_time(1'000, kHost + 900'000);
  const std::uint64_t trap = clock.trap_time(1'000'000, kHost + 1'000'050);

  EXPECT_GE(clock.host_time(kHost + 1'000'060), trap);
}

TEST(GuestClock, HostTimesNeverRunBackwards) {
  GuestClock clock = clock_of_1ghz();
  clock.trap_time(1'000, kHost + 1'000);
  const std::uint64_t before = clock.host_time(kHost + 5'000);

  clock.paused_between(kHost + 5'000, kHost + 905'000);

  EXPECT_GE(clock.host_time(kHost + 905'000), before);
  EXPECT_EQ(clock.host_time(kHost + 906'000) - before, 1'000u);
}

TEST(GuestClock, AfterAPauseTheNextTrapSetsTheOffsetRight) {
  GuestClock clock = clock_of_1ghz();
  clock.trap_time(1'000, kHost + 1'000);
  // The request took 100 before the guest really stopped, so the guest lost only 800.
  clock.paused_between(kHost + 2'000, kHost + 2'900);
  const std::uint64_t trap = clock.trap_time(10'000, kHost + 10'800);

  EXPECT_EQ(clock.host_time(kHost + 10'800), trap);
}

TEST(GuestClock, SurvivesATscFromALyingGuest) {
  GuestClock clock = clock_of_1ghz();
  clock.trap_time(UINT64_MAX, kHost);
  clock.trap_time(0, kHost + 1);
  clock.paused_between(5, 4);

  const std::uint64_t once = clock.host_time(kHost + 2);

  EXPECT_GE(clock.host_time(kHost + 3), once);
}

TEST(GuestClock, WallTimeAdvancesWithTheHost) {
  GuestClock clock = clock_of_1ghz();
  clock.set_wall(kHost, 1'700'000'000'000'000'000);

  EXPECT_EQ(clock.wall_of_host(kHost + 500), 1'700'000'000'000'000'500);
  EXPECT_EQ(clock.wall_of_host(kHost - 1), 1'700'000'000'000'000'000);
}

TEST(ChooseHertz, BelievesTheHostUnlessTheGuestIsFarAwayAndPlausible) {
  EXPECT_EQ(choose_hertz(2'000'000'000, std::nullopt), 2'000'000'000u);
  EXPECT_EQ(choose_hertz(2'000'000'000, 2'050'000), 2'000'000'000u) << "a poor calibration";
  EXPECT_EQ(choose_hertz(2'000'000'000, 3'000'000), 3'000'000'000u) << "a scaled TSC";
  EXPECT_EQ(choose_hertz(2'000'000'000, 0), 2'000'000'000u);
  EXPECT_EQ(choose_hertz(2'000'000'000, UINT32_MAX), 2'000'000'000u);
}

}  // namespace
}  // namespace ringside::providers
