#include "providers/fire/guest_clock.h"

#include <gtest/gtest.h>

#include <algorithm>

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

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kBelieved = GuestClock::kBelievedSeconds * kSecond;

TEST(GuestClock, OneForgedTscMovesNothing) {
  GuestClock clock = clock_of_1ghz();
  const std::uint64_t first = clock.trap_time(1'000, kHost + 1'000);

  for (const std::uint64_t forged :
       {std::uint64_t{1} << 62, std::uint64_t{1} << 63, kHost, std::uint64_t{0} - kHost}) {
    const std::uint64_t at = clock.trap_time(forged, kHost + 2'000);
    EXPECT_EQ(at - first, 1'000u) << "the host's time, for " << forged;
    EXPECT_EQ(clock.trap_time(2'000, kHost + 2'000) - first, 1'000u);
  }

  EXPECT_EQ(clock.host_time(kHost + 3'000) - first, 2'000u);
  EXPECT_EQ(clock.disbelieved(), 4u);
}

TEST(GuestClock, ManyForgedTscsMoveItByNoMoreThanIsBelieved) {
  GuestClock clock = clock_of_1ghz();
  const std::uint64_t first = clock.trap_time(0, kHost);
  std::uint64_t forged = 0, worst = 0;

  for (int i = 0; i < 10'000; ++i) {
    forged += kSecond;  // each alone could be a late look's
    const std::uint64_t host = kHost + 100 * static_cast<std::uint64_t>(i);
    worst = std::max(worst, clock.trap_time(forged, host) - first);
    worst = std::max(worst, clock.host_time(host) - first);
  }

  EXPECT_LE(worst, kBelieved + 1'000'000);
}

TEST(GuestClock, GoesOnWhereTheGuestSetsItsTsc) {
  // Back to 0 as a processor does it after S3, far ahead, and back again.
  GuestClock clock = clock_of_1ghz();
  std::uint64_t guest = 50 * kSecond, host = kHost;
  std::uint64_t last = clock.trap_time(guest, host);
  for (const std::uint64_t set : {std::uint64_t{0}, 5'000 * kSecond, 20 * kSecond}) {
    guest = set;
    for (int trap = 0; trap < 10; ++trap) {
      guest += 1'000, host += 1'000;
      const std::uint64_t at = clock.trap_time(guest, host);
      EXPECT_EQ(at - last, 1'000u) << set << " " << trap;
      last = at;
    }
    EXPECT_EQ(clock.host_time(host + 500) - last, 500u);
  }
  const std::uint64_t slow_look = clock.trap_time(guest + 1'000, host + 900'000);
  EXPECT_EQ(slow_look - last, 1'000u) << "and it is the guest's own again";
  EXPECT_EQ(clock.disbelieved(), 3u * GuestClock::kAgreeing);
}

TEST(GuestClock, BelievesALateLookAndThatAPauseWasLongerThanTheGuestLost) {
  GuestClock clock = clock_of_1ghz();
  clock.trap_time(0, kHost + 4 * kSecond);  // looked at 4 s late
  EXPECT_EQ(clock.trap_time(5 * kSecond, kHost + 5 * kSecond), kHost + 4 * kSecond + 5 * kSecond);
  // Ten pauses in which this guest's TSC went on.
  for (std::uint64_t n = 0; n < 10; ++n) {
    clock.paused_between(kHost + (6 + n) * kSecond, kHost + (7 + n) * kSecond);
  }
  clock.trap_time(20 * kSecond, kHost + 20 * kSecond);

  EXPECT_EQ(clock.disbelieved(), 0u);
  EXPECT_EQ(clock.host_time(kHost + 21 * kSecond), kHost + 4 * kSecond + 21 * kSecond);
}

TEST(GuestClock, FollowsATscThatRunsFasterThanTheHosts) {
  GuestClock clock(TickRate(2'000'000'000), 1'000'000'000);
  const std::uint64_t first = clock.trap_time(0, kHost);

  for (std::uint64_t second = 1; second < 100; ++second) {
    EXPECT_EQ(clock.trap_time(2 * kSecond * second, kHost + kSecond * second) - first,
              kSecond * second);
  }

  EXPECT_EQ(clock.host_time(kHost + 100 * kSecond) - first, 100 * kSecond);
  EXPECT_EQ(clock.disbelieved(), 0u);
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
