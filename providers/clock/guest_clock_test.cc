#include "providers/clock/guest_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

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

/// A machine's clock, and its stops.
struct Stopping {
  vmm::StopTimes stop_times;
  GuestClock clock{TickRate(1'000'000'000), {&stop_times, 1, kHost}};

  void stand_still(std::uint64_t from, std::uint64_t to) {
    stop_times.begin(from);
    stop_times.end(to);
  }
};

TEST(GuestClock, HostTimesNeverRunBackwards) {
  Stopping machine;
  GuestClock& clock = machine.clock;
  clock.trap_time(1'000, kHost + 1'000);
  const std::uint64_t before = clock.host_time(kHost + 5'000);

  machine.stand_still(kHost + 5'000, kHost + 905'000);
  clock.trap_time(6'000, kHost + 906'500);

  EXPECT_EQ(clock.host_time(kHost + 907'000) - before, 902'000u) << "time went on";
}

TEST(GuestClock, AfterAPauseTheNextTrapSetsTheOffsetRight) {
  Stopping machine;
  GuestClock& clock = machine.clock;
  const std::uint64_t first = clock.trap_time(1'000, kHost + 1'000);
  // The request took 100 before the guest really stopped, so the guest lost only 800.
  machine.stand_still(kHost + 2'000, kHost + 2'900);
  const std::uint64_t trap = clock.trap_time(10'000, kHost + 10'800);

  EXPECT_EQ(clock.host_time(kHost + 10'800), trap);
  EXPECT_EQ(trap - first, 9'800u) << "by the host";
}

TEST(GuestClock, SurvivesATscFromALyingGuest) {
  GuestClock clock = clock_of_1ghz();
  clock.trap_time(UINT64_MAX, kHost);
  clock.trap_time(0, kHost + 1);
  const std::uint64_t once = clock.host_time(kHost + 2);

  EXPECT_GE(clock.host_time(kHost + 3), once);
}

constexpr std::uint64_t kOneSecond = 1'000'000'000;
constexpr std::uint64_t kBelieved = GuestClock::kBelievedSeconds * kOneSecond;

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
    forged += kOneSecond;  // each alone could be a late look's
    const std::uint64_t host = kHost + 100 * static_cast<std::uint64_t>(i);
    worst = std::max(worst, clock.trap_time(forged, host) - first);
    worst = std::max(worst, clock.host_time(host) - first);
  }

  EXPECT_LE(worst, kBelieved + 1'000'000);
}

TEST(GuestClock, GoesOnWhereTheGuestSetsItsTsc) {
  // Back to 0 as a processor does it after S3, far ahead, and back again.
  GuestClock clock = clock_of_1ghz();
  std::uint64_t guest = 50 * kOneSecond, host = kHost;
  std::uint64_t last = clock.trap_time(guest, host);
  for (const std::uint64_t set : {std::uint64_t{0}, 5'000 * kOneSecond, 20 * kOneSecond}) {
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
  Stopping machine;
  GuestClock& clock = machine.clock;
  clock.trap_time(0, kHost + 4 * kOneSecond);  // looked at 4 s late
  EXPECT_EQ(clock.trap_time(5 * kOneSecond, kHost + 5 * kOneSecond), kHost + 5 * kOneSecond);
  // Ten pauses in which this guest's TSC went on.
  for (std::uint64_t n = 0; n < 10; ++n) {
    machine.stand_still(kHost + (6 + n) * kOneSecond, kHost + (7 + n) * kOneSecond);
  }
  clock.trap_time(20 * kOneSecond, kHost + 20 * kOneSecond);

  EXPECT_EQ(clock.disbelieved(), 0u);
  EXPECT_EQ(clock.trap_time(21 * kOneSecond, kHost + 21 * kOneSecond), kHost + 21 * kOneSecond);
  EXPECT_EQ(clock.host_time(kHost + 21 * kOneSecond), kHost + 21 * kOneSecond);
}

TEST(GuestClock, AStopThatItIsToldOfIsNoClockThatWasSet) {
  // A stop is told of late, and may be over before anybody says so.
  for (const bool tsc_goes_on : {false, true}) {
    Stopping machine;
    GuestClock& clock = machine.clock;
    std::uint64_t guest = 0, host = kHost, stopped = 0;
    const std::uint64_t first = clock.trap_time(guest, host, 0);
    for (const std::uint64_t length :
         {kOneSecond / 1000, kOneSecond, 60 * kOneSecond, 3600 * kOneSecond}) {
      machine.stop_times.begin(host - 100);
      host += length, stopped += length;
      if (tsc_goes_on) guest += length;
      for (int trap = 0; trap < 5; ++trap) {
        guest += 1'000, host += 1'000;
        EXPECT_EQ(clock.trap_time(guest, host, 0) - first, host - kHost) << length << " " << trap;
        if (trap == 2) machine.stop_times.end(host);
      }
      EXPECT_EQ(clock.host_time(host), clock.trap_time(guest, host, 0));
    }
    EXPECT_EQ(clock.disbelieved(), 0u) << tsc_goes_on;
  }
}

TEST(GuestClock, AStopThatNobodyTellsOfShowsInOneVcpusTraps) {
  GuestClock clock(TickRate(kOneSecond), {nullptr, 2, kHost});
  const std::uint64_t first = clock.trap_time(0, kHost, 0);
  clock.trap_time(500, kHost + 500, 1);

  // 3 s. The first trap after them could as well be one that the host looks at late.
  EXPECT_EQ(clock.trap_time(1'000, kHost + 3 * kOneSecond + 1'000, 0) - first, 1'000u);
  const std::uint64_t after = clock.trap_time(2'000, kHost + 3 * kOneSecond + 2'000, 0);
  const std::uint64_t other = clock.trap_time(3'000, kHost + 3 * kOneSecond + 3'000, 1);

  EXPECT_EQ(after - first, 3 * kOneSecond + 2'000);
  EXPECT_EQ(other - after, 1'000u);
  EXPECT_EQ(clock.disbelieved(), 0u);
}

TEST(GuestClock, ComesNearTheTruthSlowlyOrFromFarAtOnce) {
  constexpr std::uint64_t kLate = 5'000'000;
  GuestClock clock(TickRate(kOneSecond), {nullptr, 1, kHost});
  EXPECT_EQ(clock.trap_time(0, kHost + kLate, 0), kHost + kLate);
  std::uint64_t last = kHost + 2 * kLate, guest = kLate;  // as if there had been one by now
  for (int trap = 0; trap < 30'000; ++trap) {
    guest += 1'000'000;
    const std::uint64_t at = clock.trap_time(guest, kHost + guest, 0);
    EXPECT_NEAR(static_cast<double>(at - last), 1e6, 251);
    last = at;
  }
  EXPECT_EQ(last, kHost + guest);

  GuestClock far(TickRate(kOneSecond), {nullptr, 1, kHost});
  far.trap_time(0, kHost + 60 * kLate, 0);
  EXPECT_EQ(far.trap_time(61 * kLate, kHost + 61 * kLate, 0), kHost + 61 * kLate);
}

TEST(GuestClock, ALateLookDoesNotPutATrapBeforeTheOneBefore) {
  constexpr std::uint64_t kLate = 5'000'000;
  GuestClock clock(TickRate(kOneSecond), {nullptr, 1, kHost});
  clock.trap_time(0, kHost + kLate, 0);
  const std::uint64_t entry = clock.trap_time(kLate, kHost + kLate, 0);  // much to make up
  EXPECT_GT(clock.trap_time(kLate + 3'000, kHost + 2 * kLate, 0), entry);
}

/// While the line comes nearer to the truth by the traps of others, one trap waits to be looked at.
TEST(GuestClock, ATrapThatWaitedIsNotBeforeTheOneBeforeWhateverOthersHaveShownMeanwhile) {
  constexpr std::uint64_t kLate = 600'000, kWait = 7'000'000, kBetween = 3'000;
  for (const std::uint32_t next : {1u, 2u}) {  // the thread's vCPU is another one by then, or not
    GuestClock clock(TickRate(kOneSecond), {nullptr, 3, kHost});
    clock.trap_time(0, kHost + kLate, 0);
    std::uint64_t guest = kLate;
    const std::uint64_t entry = clock.trap_time(guest, kHost + guest, 1);
    const std::uint64_t came = guest + kBetween;
    for (; guest < came + kWait; guest += 10'000) clock.trap_time(guest, kHost + guest, 0);

    const std::uint64_t took = clock.trap_time(came, kHost + guest, next) - entry;

    EXPECT_GE(took, kBetween - kBetween / 500) << next;
    EXPECT_LE(took, kBetween + kWait / 500) << next;
    EXPECT_GE(clock.trap_time(came + 1'000, kHost + guest + 1'000, next) - entry, took) << next;
  }
}

TEST(GuestClock, OneVcpusTimesNeverRunBackwards) {
  GuestClock clock(TickRate(kOneSecond), {nullptr, 2, kHost});
  clock.trap_time(0, kHost + 300'000'000, 0);
  const std::uint64_t before = clock.trap_time(300'000'000, kHost + 300'000'001, 1);

  clock.trap_time(300'001'000, kHost + 300'001'000, 0);  // from far, at once

  EXPECT_GE(clock.trap_time(300'000'500, kHost + 300'002'000, 1), before);
}

TEST(GuestClock, InOrderPutsNoTimeBeforeTheLastOfItsVcpu) {
  GuestClock clock(TickRate(kOneSecond), {nullptr, 2, kHost});

  EXPECT_EQ(clock.in_order(1'000, 0), 1'000u);
  EXPECT_EQ(clock.in_order(900, 0), 1'000u);
  EXPECT_EQ(clock.in_order(900, 1), 900u) << "another one's";
  EXPECT_EQ(clock.in_order(1'001, 0), 1'001u);
  EXPECT_EQ(clock.in_order(500, 2), 500u) << "nobody knows its order";
  EXPECT_EQ(clock.in_order(400, 2), 400u);
}

TEST(GuestClock, TrapsThatWaitAndThoseThatDoNotHaveOneOrder) {
  GuestClock clock(TickRate(kOneSecond), {nullptr, 1, kHost});
  const std::uint64_t waited = clock.trap_time(5'000, kHost + 5'000, 0);
  EXPECT_EQ(clock.in_order(waited - 1'000, 0), waited);
  EXPECT_EQ(clock.in_order(waited + 1'000, 0), waited + 1'000);

  EXPECT_EQ(clock.trap_time(5'500, kHost + 5'500, 0), waited + 1'000);
}

std::uint64_t recorded_time(GuestClock& clock, std::uint64_t tsc, std::uint64_t before,
                            std::uint64_t host_tsc) {
  clock.recorded_times(std::span(&tsc, 1), before, host_tsc);
  return tsc;
}

TEST(GuestClock, ARecordedTrapHasTheGuestsOwnTimeHoweverLateTheHostLooks) {
  GuestClock clock(TickRate(kOneSecond), {nullptr, 1, kHost});
  const std::uint64_t first = clock.trap_time(1'000, kHost + 1'000, 0);

  // Ten in one ring, which is copied 5 ms later.
  for (std::uint64_t n = 1; n <= 10; ++n) {
    const std::uint64_t guest = 1'000 + 3'000 * n;
    EXPECT_EQ(recorded_time(clock, guest, kHost + 1'000, kHost + 5'000'000) - first, 3'000 * n);
  }

  EXPECT_EQ(clock.host_time(kHost + 5'000'000) - first, 4'999'000u);
  EXPECT_EQ(clock.disbelieved(), 0u);
}

TEST(GuestClock, RecordedTrapsOfOneLookHaveTheTimesThatTheyHaveOneByOne) {
  GuestClock together(TickRate(kOneSecond), {nullptr, 1, kHost});
  GuestClock alone(TickRate(kOneSecond), {nullptr, 1, kHost});
  for (GuestClock* const clock : {&together, &alone}) clock->trap_time(9'000, kHost + 9'700, 0);

  // The third one shows that the clock was thought to be later than it is, and the last one is
  // forged.
  std::array<std::uint64_t, 5> tscs = {9'100, 9'200, 12'900, 13'000, 90 * kOneSecond};
  std::vector<std::uint64_t> expected;
  for (const std::uint64_t tsc : tscs) {
    expected.push_back(recorded_time(alone, tsc, kHost + 9'700, kHost + 13'000));
  }
  together.recorded_times(tscs, kHost + 9'700, kHost + 13'000);

  EXPECT_EQ(std::vector(tscs.begin(), tscs.end()), expected);
  EXPECT_EQ(together.disbelieved(), alone.disbelieved());
  EXPECT_EQ(together.accuracy()->offset, alone.accuracy()->offset);
}

TEST(GuestClock, UntilItHasSettledItFollowsTheBestLookAtOnce) {
  GuestClock clock(TickRate(kOneSecond), {nullptr, 1, kHost});
  recorded_time(clock, 1'000, kHost, kHost + 90'000'000);
  EXPECT_FALSE(clock.is_settled());

  recorded_time(clock, 10'000'000, kHost + 9'000'000, kHost + 10'000'700);
  clock.settle();

  EXPECT_EQ(clock.time_of_tsc(1'000), kHost + 1'700);
  recorded_time(clock, 20'000'000, kHost + 19'000'000, kHost + 20'000'000);
  EXPECT_NEAR(static_cast<double>(clock.time_of_tsc(20'000'000) - kHost), 20'000'700, 251)
      << "and slowly from then on";
}

TEST(GuestClock, ARecordedTrapIsBelievedHoweverLongItWaited) {
  GuestClock clock(TickRate(kOneSecond), {nullptr, 1, kHost});
  const std::uint64_t first = clock.trap_time(1'000, kHost + 1'000, 0);

  const std::uint64_t time = recorded_time(clock, 3'000, kHost + 1'000, kHost + 60 * kOneSecond);

  EXPECT_EQ(time - first, 2'000u);
  EXPECT_EQ(clock.disbelieved(), 0u);
  // But not one that says that it came before a look that did not find it.
  recorded_time(clock, 4'000, kHost + 60 * kOneSecond, kHost + 61 * kOneSecond);
  EXPECT_EQ(clock.disbelieved(), 1u);
}

TEST(GuestClock, ARecordedTrapShowsHowLateTimesAreAtMost) {
  GuestClock clock(TickRate(kOneSecond), {nullptr, 1, kHost});
  clock.trap_time(10'000, kHost + 10'000);
  ASSERT_GT(clock.accuracy()->late_at_most, 1'000'000u) << "it could have come long before";

  // It had not come 200 before it did.
  recorded_time(clock, 20'000, kHost + 19'800, kHost + 500'000);

  EXPECT_EQ(clock.accuracy()->late_at_most, 200u);
}

TEST(GuestClock, RecordedTrapsShowAStopThatNobodyTellsOf) {
  GuestClock clock(TickRate(kOneSecond), {nullptr, 1, kHost});
  const std::uint64_t first = clock.trap_time(0, kHost, 0);

  // The machine stood still for 3 s before the host looked, and saw that nothing had come yet.
  const std::uint64_t looked = kHost + 3 * kOneSecond + 1'000;
  const std::uint64_t time = recorded_time(clock, 2'000, looked, looked + 1'000);

  EXPECT_EQ(time - first, 3 * kOneSecond + 2'000);
}

TEST(GuestClock, SaysHowLateItsTimesAreAtMost) {
  GuestClock clock(TickRate(kOneSecond), {nullptr, 1, kHost});
  EXPECT_FALSE(clock.accuracy());

  clock.trap_time(10'000, kHost + 10'700, 0);  // 700 late, which cannot be known yet
  EXPECT_EQ(clock.accuracy()->late_at_most, 10'700u) << "it was not before tracing began";
  clock.trap_time(11'900, kHost + 12'000, 0);
  clock.trap_time(12'150, kHost + 12'400, 0);

  // The line is 700 late still; it is between 100 and 150 after the look that the guest went on.
  const auto accuracy = clock.accuracy();
  EXPECT_EQ(accuracy->offset, -static_cast<std::int64_t>(kHost) - 100);
  EXPECT_EQ(accuracy->late_at_most, 850u);
}

TEST(GuestClock, FollowsATscOfAnotherRateOnceTrapsShowIt) {
  for (const std::uint64_t hertz : {2 * kOneSecond, kOneSecond / 4, kOneSecond + kOneSecond / 25}) {
    GuestClock clock(TickRate(kOneSecond), {nullptr, 1, kHost, hertz});
    const std::uint64_t first = clock.trap_time(0, kHost, 0);

    for (std::uint64_t second = 1; second < 100; ++second) {
      const std::uint64_t at = clock.trap_time(hertz * second, kHost + kOneSecond * second, 0);
      // One that comes at once shows when the one before it was, and so how fast the TSC is.
      clock.trap_time(hertz * second + hertz / 1'000'000, kHost + kOneSecond * second + 1'000, 0);
      if (second > 1) {
        EXPECT_EQ(at - first, kOneSecond * second);
      }
    }

    EXPECT_EQ(clock.host_time(kHost + 100 * kOneSecond) - first, 100 * kOneSecond);
    EXPECT_EQ(clock.disbelieved(), 0u);
    EXPECT_EQ(clock.accuracy()->factor, static_cast<double>(hertz) / 1e9);
  }
}

TEST(GuestClock, BelievesNoRateThatTrapsDoNotShow) {
  // As guests measure it whose host was busy.
  for (const std::uint64_t hertz : {kOneSecond / 2, kOneSecond - kOneSecond / 50, 3 * kOneSecond}) {
    GuestClock clock(TickRate(kOneSecond), {nullptr, 1, kHost, hertz});
    const std::uint64_t first = clock.trap_time(0, kHost, 0);

    for (std::uint64_t trap = 1; trap < 1'000; ++trap) {
      const std::uint64_t at = trap * kOneSecond / 10;
      EXPECT_EQ(clock.trap_time(at, kHost + at + trap % 7 * 1'000'000, 0) - first, at);
    }

    EXPECT_EQ(clock.accuracy()->factor, 1);
    EXPECT_EQ(clock.disbelieved(), 0u);
  }
}

TEST(GuestClock, WallTimeAdvancesWithTheHost) {
  GuestClock clock = clock_of_1ghz();
  clock.set_wall(kHost, 1'700'000'000'000'000'000);

  EXPECT_EQ(clock.wall_of_host(kHost + 500), 1'700'000'000'000'000'500);
  EXPECT_EQ(clock.wall_of_host(kHost - 1), 1'700'000'000'000'000'000);
}

TEST(PlausibleHertz, IsWhatATscCanHave) {
  EXPECT_EQ(plausible_hertz(2'050'000), 2'050'000'000u);
  EXPECT_EQ(plausible_hertz(std::nullopt), std::nullopt);
  EXPECT_EQ(plausible_hertz(0), std::nullopt);
  EXPECT_EQ(plausible_hertz(UINT32_MAX), std::nullopt);
}

TEST(GuestClockOrder, TimesGoOnAtHalfTheirPaceWhileTheLineHasMovedBack) {
  const GuestClock clock(TickRate(1'000'000'000));
  EXPECT_EQ(clock.after(1000, 50, 2000), 2000u) << "it has not moved";
  EXPECT_EQ(clock.after(1000, 50, 1000), 1025u);
  EXPECT_EQ(clock.after(1000, 50, 900), 1025u);
  EXPECT_EQ(clock.after(1000, INT64_MAX, 900), 51'000u) << "whatever the guest's TSC says";
  EXPECT_EQ(clock.after(1000, UINT64_MAX, 900), 1000u) << "it came before";
  EXPECT_EQ(clock.after(9'000'000, 50, 1000), 9'000'025u) << "however far it has moved";
}

}  // namespace
}  // namespace ringside::providers
