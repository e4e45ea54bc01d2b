#include "providers/fire/replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "providers/fire/poller.h"
#include "providers/testing/recording_guest.h"

namespace ringside::providers {
namespace {

/// Of each CPU.
void expect_in_order(const WatchingSink& sink) {
  std::array<std::uint64_t, 2> last{};
  for (const WatchingSink::Seen& one : sink.seen) {
    EXPECT_GE(one.record.timestamp, last.at(one.record.vcpu)) << one.id;
    last[one.record.vcpu] = one.record.timestamp;
  }
}

TEST(Replay, TrapsOfTwoCpusFireInTheOrderOfTheirTimes) {
  RecordingGuest guest;
  std::vector<std::uint64_t> times;
  // The fourth one is of a trap inside of a trap.
  for (const std::size_t ring : {0u, 2u, 2u, 1u, 0u, 0u, 2u, 3u, 2u, 0u}) {
    times.push_back(guest.record(ring, times.size()));
  }

  ASSERT_TRUE(guest.pass_until_fired(times.size()));

  EXPECT_EQ(guest.sink.ids(), up_to(times.size()));
  for (std::size_t n = 0; n < times.size(); ++n) {
    EXPECT_EQ(guest.sink.seen[n].record.timestamp, times[n]) << n;
  }
  EXPECT_EQ(guest.sink.seen[0].record.vcpu, 0u);
  EXPECT_EQ(guest.sink.seen[1].record.vcpu, 1u);
  EXPECT_EQ(guest.sink.seen[3].record.vcpu, 0u);
  EXPECT_EQ(guest.replay.late(), 0u);
  EXPECT_EQ(guest.dispatcher.tally().recorded(), times.size());
  EXPECT_EQ(guest.dispatcher.tally().by_cpu()[1].traps, 5u);
  EXPECT_EQ(guest.dispatcher.tally().by_cpu()[1].waited, 0u);
}

TEST(Replay, DropsFellBetweenTheLooksThatSawThem) {
  RecordingGuest guest;
  (void)guest.replay.pass();
  EXPECT_EQ(guest.replay.drop_span().until, 0u);
  const std::uint64_t before = guest.clock.moment(host_tsc());
  (void)guest.replay.pass();
  guest.region.ring(2).dropped += 3;
  (void)guest.replay.pass();
  const Replay::DropSpan first = guest.replay.drop_span();
  const std::uint64_t after = guest.clock.moment(host_tsc());

  EXPECT_GE(first.from, before);
  EXPECT_LT(first.from, first.until);
  EXPECT_LE(first.until, after);
  (void)guest.replay.pass();
  EXPECT_EQ(guest.replay.drop_span().until, first.until);
  guest.region.ring(1).dropped += 1;
  (void)guest.replay.pass();
  EXPECT_EQ(guest.replay.drop_span().from, first.from);
  EXPECT_GT(guest.replay.drop_span().until, after);
}

TEST(Replay, WallTimeIsThatOfTheTrapToo) {
  constexpr std::int64_t kWall = 1'700'000'000'000'000'000;
  RecordingGuest guest;
  const std::uint64_t begun = host_tsc();
  guest.clock.set_wall(begun, kWall);
  const std::uint64_t came = guest.record(0, 0);

  ASSERT_TRUE(guest.pass_until_fired(1));

  EXPECT_EQ(guest.sink.seen[0].record.walltimestamp,
            kWall + static_cast<std::int64_t>(came - begun));
}

TEST(Replay, ATrapThatComesAfterTheLookHasBegunIsKeptForALaterPass) {
  for (const bool looked_before : {false, true}) {
    RecordingGuest guest(kGigahertz, vmm::Reach::Copied);
    if (looked_before) (void)guest.replay.pass();
    bool looked = false;
    guest.region.meanwhile() = [&](std::uint64_t offset) {
      if (looked || offset != guest.region.layout().rings) return;
      looked = true;
      guest.record(2, 0);
    };

    (void)guest.replay.pass();

    guest.region.meanwhile() = nullptr;
    EXPECT_EQ(guest.region.ring(2).tail, 1u) << "it was copied";
    EXPECT_TRUE(guest.sink.seen.empty()) << "an earlier one may still come";
    ASSERT_TRUE(guest.pass_until_fired(1));
    EXPECT_EQ(guest.replay.late(), 0u);
  }
}

/// In ps: so this test has 40 s until the CPU is waited for no longer.
constexpr std::uint64_t kPicoseconds = 1000 * kGigahertz;

TEST(Replay, ACpuThatWritesARecordHoldsTheOthersBack) {
  for (const bool looked_before : {false, true}) {
    RecordingGuest guest(kPicoseconds);
    if (looked_before) (void)guest.replay.pass();
    const std::uint64_t earlier = host_tsc();
    guest.region.ring(2).busy = 1;
    const std::uint64_t later = guest.record(0, 1);

    guest.pass_beyond(later);
    EXPECT_TRUE(guest.sink.seen.empty());
    guest.record(2, 0, earlier);
    guest.region.ring(2).busy = 0;
    ASSERT_TRUE(guest.pass_until_fired(2));

    EXPECT_EQ(guest.sink.ids(), up_to(2));
    EXPECT_EQ(guest.replay.late(), 0u);
  }
}

TEST(Replay, ACpuThatWritesARecordHoldsNothingBackThatCameBefore) {
  RecordingGuest guest(kPicoseconds);
  guest.record(0, 0);
  guest.pass_beyond(guest.record(2, 1));
  ASSERT_EQ(guest.sink.ids(), up_to(2));
  guest.record(2, 2);
  guest.record(0, 3, guest.record(2, 4));
  guest.region.ring(2).busy = 1;

  guest.pass_beyond(host_tsc());

  EXPECT_EQ(guest.sink.ids(), up_to(5));
}

TEST(Replay, ARecordIsKeptWhileAnEarlierOneMayLieInAStoreBuffer) {
  RecordingGuest guest(100'000 * kGigahertz);  // for 0.8 s
  guest.record(0, 0);

  (void)guest.replay.pass();

  EXPECT_EQ(guest.region.ring(0).tail, 1u) << "it was copied";
  EXPECT_TRUE(guest.sink.seen.empty());
  guest.replay.drain();
  EXPECT_EQ(guest.sink.ids(), up_to(1));
}

TEST(Replay, ACpuThatWritesARecordHoldsNothingBackThatCameBeforeItsLastLook) {
  RecordingGuest guest(kPicoseconds);
  const std::uint64_t came = guest.record(0, 0);
  (void)guest.replay.pass();
  guest.region.ring(2).busy = 1;

  guest.pass_beyond(came);

  EXPECT_EQ(guest.sink.ids(), up_to(1));
}

TEST(Replay, ACpuThatStandsStillHoldsNothingBackForLong) {
  RecordingGuest guest(kGigahertz / 100);  // 0.4 ms instead of 40
  (void)guest.replay.pass();
  const std::uint64_t earlier = host_tsc();
  guest.region.ring(2).busy = 1;
  guest.record(0, 1);
  ASSERT_TRUE(guest.pass_until_fired(1));
  EXPECT_EQ(guest.replay.late(), 0u);

  guest.record(2, 0, earlier);
  guest.region.ring(2).busy = 0;
  ASSERT_TRUE(guest.pass_until_fired(2));

  EXPECT_EQ(guest.sink.ids(), (std::vector<std::uint64_t>{1, 0}));
  EXPECT_LE(guest.sink.seen[1].record.timestamp, guest.sink.seen[0].record.timestamp);
  EXPECT_EQ(guest.replay.late(), 1u) << "which is told";
}

TEST(Replay, ARingThatFillsUpBehindAHeldOneLosesNothing) {
  RecordingGuest guest(kPicoseconds);
  (void)guest.replay.pass();
  const std::uint64_t earliest = host_tsc();
  guest.region.ring(2).busy = 1;
  const std::uint64_t capacity = guest.capacity();
  for (std::uint64_t id = 1; id <= capacity; ++id) guest.record(0, id);
  EXPECT_EQ(guest.replay.pass(), 1.0) << "the ring was full";
  EXPECT_EQ(guest.replay.pass(), 0.0) << "and is empty";
  for (std::uint64_t id = 1; id <= capacity; ++id) guest.record(0, capacity + id);

  EXPECT_EQ(guest.replay.pass(), 1.0);
  EXPECT_EQ(guest.replay.pass(), 1.0) << "there is no room yet";
  EXPECT_EQ(guest.region.ring(0).tail, capacity);
  EXPECT_TRUE(guest.sink.seen.empty());
  guest.record(2, 0, earliest);
  guest.region.ring(2).busy = 0;
  ASSERT_TRUE(guest.pass_until_fired(2 * capacity + 1));

  EXPECT_EQ(guest.sink.ids(), up_to(2 * capacity + 1));
  EXPECT_EQ(guest.replay.late(), 0u);
}

TEST(Replay, APassTellsHowFullTheFullestRingWas) {
  RecordingGuest guest;
  EXPECT_EQ(guest.replay.pass(), 0.0);
  for (std::uint64_t n = 0; n < guest.capacity() / 2; ++n) guest.record(2, n);
  guest.record(0, 0);

  EXPECT_EQ(guest.replay.pass(), 0.5);
  EXPECT_EQ(guest.replay.pass(), 0.0);
}

TEST(Replay, WhatWasCopiedFiresThoughTheShimIsGone) {
  RecordingGuest guest(kPicoseconds);
  (void)guest.replay.pass();
  guest.region.ring(2).busy = 1;
  guest.record(0, 0);
  (void)guest.replay.pass();
  ASSERT_TRUE(guest.sink.seen.empty());
  guest.region.control().left = 1;  // the guest starts another kernel
  guest.record(0, 9);

  ASSERT_TRUE(guest.pass_until_fired(1));
  guest.replay.drain();

  EXPECT_EQ(guest.sink.ids(), up_to(1));
}

TEST(ReplayOfTrapsThatWait, WhatWasRecordedBeforeFiresFirst) {
  RecordingGuest guest;
  guest.record(2, 0);
  guest.record(0, 1);
  guest.record(2, 2);
  const vmm::Trap trap = RecordingGuest::trap(0, 3);
  guest.record(2, 4);

  guest.replay.on_trap(trap);

  EXPECT_EQ(guest.sink.ids(), up_to(4)) << "and what was recorded after it does not yet";
  EXPECT_EQ(guest.sink.seen[3].record.timestamp, trap.tsc);
  ASSERT_TRUE(guest.pass_until_fired(5));
  EXPECT_EQ(guest.replay.late(), 0u);
  EXPECT_EQ(guest.dispatcher.tally().recorded(), 4u);
  EXPECT_EQ(guest.dispatcher.tally().histogram().total(), 1u);
}

TEST(ReplayOfTrapsThatWait, ACpuThatWritesARecordIsWaitedFor) {
  RecordingGuest guest(100 * kGigahertz, vmm::Reach::Copied);
  (void)guest.replay.pass();
  const std::uint64_t earlier = host_tsc();
  guest.region.ring(2).busy = 1;
  guest.record(0, 1);
  unsigned copies = 0;
  guest.region.meanwhile() = [&](std::uint64_t offset) {
    if (offset != guest.region.layout().rings || ++copies != 3) return;
    guest.record(2, 0, earlier);  // at the second look
    guest.region.ring(2).busy = 0;
  };

  guest.replay.on_trap(RecordingGuest::trap(0, 2));

  guest.region.meanwhile() = nullptr;
  EXPECT_EQ(guest.sink.ids(), up_to(3));
  EXPECT_EQ(guest.replay.late(), 0u);
}

TEST(ReplayOfTrapsThatWait, ACpuThatGoesOnWritingIsWaitedForOnlyForAMoment) {
  RecordingGuest guest;
  (void)guest.replay.pass();
  const std::uint64_t earlier = host_tsc();
  guest.region.ring(2).busy = 1;
  guest.record(0, 1);

  guest.replay.on_trap(RecordingGuest::trap(0, 2));

  EXPECT_EQ(guest.sink.ids(), (std::vector<std::uint64_t>{1, 2}));
  guest.record(2, 3, earlier);
  guest.region.ring(2).busy = 0;
  guest.replay.drain();
  EXPECT_EQ(guest.sink.ids(), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(guest.replay.late(), 1u);
}

TEST(ReplayOfTrapsThatWait, OneOfNoCpuFiresNothingItself) {
  RecordingGuest guest;
  guest.record(0, 0);
  vmm::Trap trap = RecordingGuest::trap(0, 1);
  trap.percpu_base = kernel_address(0x77000);

  guest.replay.on_trap(trap);

  EXPECT_EQ(guest.sink.ids(), up_to(1));
  EXPECT_EQ(guest.dispatcher.counters().unknown_cpu, 1u);
}

TEST(Replay, CatchesUpWithAllThatWasRecorded) {
  RecordingGuest guest;
  for (std::uint64_t id = 0; id < 10; ++id) guest.record(id % 4, id);

  guest.replay.catch_up();

  EXPECT_EQ(guest.sink.ids(), up_to(10));
  guest.replay.catch_up();
  EXPECT_EQ(guest.sink.seen.size(), 10u) << "once";
  EXPECT_EQ(guest.replay.late(), 0u);
}

TEST(Replay, EmptiesRingsOfTrapsThatSeemLaterThanTheyAre) {
  RecordingGuest guest;
  const std::uint64_t hour = 3600 * kGigahertz;
  guest.record(0, 0, host_tsc() + hour);
  guest.record(2, 1, host_tsc() + hour);

  guest.replay.empty_rings();

  EXPECT_EQ(guest.sink.ids(), up_to(2));
}

TEST(Replay, EmptiesRingsThatHoldMoreThanItHolds) {
  RecordingGuest guest(kPicoseconds);
  guest.region.ring(2).busy = 1;
  const std::uint64_t hour = 3600 * kGigahertz;
  const std::uint64_t capacity = guest.capacity();
  for (std::uint64_t id = 0; id < 2 * capacity; ++id) {
    guest.record(0, id, host_tsc() + hour);
    if (id + 1 == capacity) (void)guest.replay.pass();
  }
  ASSERT_TRUE(guest.sink.seen.empty()) << "an earlier one may still come";
  guest.sink.during = [&](const dif::GuestContext&) {
    if (guest.sink.seen.size() == 1) guest.record(2, 2 * capacity, host_tsc() + 2 * hour);
  };

  guest.replay.empty_rings();

  EXPECT_EQ(guest.sink.ids(), up_to(2 * capacity)) << "a later one is not waited for";
}

/// One ring has more than is copied at a time, the other one what came after all of that.
TEST(Replay, CatchesUpInOrderHoweverMuchThereIs) {
  RecordingGuest guest;
  guest.region.ring(2).busy = 1;
  const std::uint64_t capacity = guest.capacity();
  for (std::uint64_t id = 0; id < 2 * capacity; ++id) {
    guest.record(0, id);
    if (id + 1 == capacity) (void)guest.replay.pass();
  }
  guest.record(2, 2 * capacity);
  guest.sink.during = [](const dif::GuestContext&) { sleep_ns(20'000); };

  guest.replay.catch_up();

  EXPECT_EQ(guest.sink.ids(), up_to(2 * capacity + 1));
  EXPECT_EQ(guest.replay.late(), 0u);
}

TEST(Replay, CatchesUpWithMoreThanItHoldsAtATime) {
  RecordingGuest guest(kPicoseconds);
  (void)guest.replay.pass();
  const std::uint64_t earliest = host_tsc();
  guest.region.ring(2).busy = 1;
  const std::uint64_t capacity = guest.capacity();
  for (std::uint64_t id = 1; id <= 2 * capacity; ++id) {
    guest.record(0, id);
    if (id == capacity) (void)guest.replay.pass();
  }
  guest.record(2, 0, earliest);
  guest.region.ring(2).busy = 0;

  guest.replay.catch_up();

  EXPECT_EQ(guest.sink.ids().size(), 2 * capacity + 1);
  EXPECT_EQ(guest.sink.ids(), up_to(2 * capacity + 1));
}

TEST(Replay, DrainsAllThatIsThereAndWaitsForNobody) {
  RecordingGuest guest;
  guest.region.ring(2).busy = 1;
  for (std::uint64_t id = 0; id < guest.capacity(); ++id) guest.record(0, id);
  guest.sink.during = [&](const dif::GuestContext&) {
    if (guest.sink.seen.size() <= 5) guest.record(2, 1000);  // beside it
  };

  guest.replay.drain();

  EXPECT_EQ(guest.sink.seen.size(), guest.capacity() + 5);
  EXPECT_EQ(std::ranges::count(guest.sink.ids(), 1000u), 5);
  EXPECT_EQ(guest.region.ring(0).tail, guest.region.ring(0).head);
  EXPECT_EQ(guest.region.ring(2).tail, guest.region.ring(2).head);
}

TEST(Replay, DrainsForAWhileOnlyWhereTheGuestWritesOnAndOn) {
  RecordingGuest guest;
  guest.record(0, 0);
  guest.sink.during = [&](const dif::GuestContext&) { guest.record(0, guest.sink.seen.size()); };

  guest.replay.drain();

  EXPECT_GE(guest.sink.seen.size(), 10u);
  EXPECT_LE(guest.sink.seen.size(), 1000u);
  EXPECT_EQ(guest.sink.ids(), up_to(guest.sink.seen.size()));
}

TEST(Replay, ACpusTimesNeverRunBackwards) {
  RecordingGuest guest;
  std::mt19937_64 random(3);
  std::uint64_t id = 0;
  for (unsigned round = 0; round < 200; ++round) {
    for (std::uint64_t n = random() % (vmm::ShimLayout::nested_records() + 1); n != 0; --n) {
      guest.record(random() % 4, id++, host_tsc() - random() % 50'000);
    }
    switch (random() % 4) {
      case 0: guest.replay.catch_up(); break;
      case 1:
        guest.replay.on_trap(
            RecordingGuest::trap(random() % 4, id++, host_tsc() - random() % 50'000));
        break;
      default: (void)guest.replay.pass();
    }
  }
  guest.replay.drain();

  EXPECT_EQ(guest.sink.seen.size(), id);
  expect_in_order(guest.sink);
}

/// A program naps for 10 ms between its first two traps, and the host first looks 40 ms late.
TEST(Replay, TheFirstIntervalsAreRightHoweverLateTheFirstLookIs) {
  RecordingGuest guest(kGigahertz, vmm::Reach::Mapped, {}, nullptr, Knows::Nothing);
  const std::uint64_t begun = host_tsc() - 40'000'000;
  guest.record(0, 0, begun);
  (void)guest.replay.pass();
  EXPECT_TRUE(guest.sink.seen.empty()) << "one look says little";
  guest.record(0, 1, begun + 10'000'000);
  (void)guest.replay.pass();
  const std::uint64_t last = guest.record(2, 2);
  ASSERT_TRUE(guest.pass_until_fired(3));

  ASSERT_EQ(guest.sink.ids(), up_to(3));
  EXPECT_EQ(guest.sink.seen[1].record.timestamp - guest.sink.seen[0].record.timestamp, 10'000'000u);
  EXPECT_EQ(guest.sink.seen[2].record.timestamp - guest.sink.seen[0].record.timestamp,
            last - begun);
}

TEST(Replay, ARingThatFillsUpWaitsForNoMoreLooksAndTheEndForNone) {
  for (const bool is_full : {false, true}) {
    RecordingGuest guest(kGigahertz / 1000, vmm::Reach::Mapped, {}, nullptr, Knows::Nothing);
    const std::uint64_t count = is_full ? guest.capacity() / 2 : 1;
    for (std::uint64_t n = 0; n < count; ++n) guest.record(0, n);
    if (is_full) {
      ASSERT_TRUE(guest.pass_until_fired(count));
    } else {
      (void)guest.replay.pass();
      EXPECT_TRUE(guest.sink.seen.empty());
      guest.replay.drain();
    }
    EXPECT_EQ(guest.sink.ids(), up_to(count));
  }
}

TEST(Replay, AForgedTscDoesNotHoldTheFirstRecordsBack) {
  RecordingGuest guest(kGigahertz, vmm::Reach::Mapped, {}, nullptr, Knows::Nothing);
  guest.record(0, 0);
  (void)guest.replay.pass();
  guest.record(0, 1, INT64_MAX);
  guest.record(2, 2);

  EXPECT_TRUE(guest.pass_until_fired(3));
}

/// The look at the first one is late, so it gets too late a time, and the next ones show that.
TEST(Replay, TimesOfAllCpusAreInOrderWhateverTheHostLearnsOfTheClock) {
  RecordingGuest guest;
  const std::uint64_t now = host_tsc();
  guest.record(0, 0, now - 20'000'000);
  guest.record(2, 1, now - 1'000'000);
  guest.record(0, 2, now - 900'000);
  guest.record(2, 3, now - 800'000);

  guest.replay.drain();

  ASSERT_EQ(guest.sink.ids(), up_to(4));
  for (std::size_t n = 1; n < 4; ++n) {
    EXPECT_GT(guest.sink.seen[n].record.timestamp, guest.sink.seen[n - 1].record.timestamp) << n;
  }
}

/// Any TSC, any CPU, any word.
TEST(Replay, OutlivesAGuestThatWritesAnything) {
  RecordingGuest guest;
  std::mt19937_64 random(4);
  const auto data = guest.region.bytes().subspan(guest.region.layout().rings);
  for (unsigned round = 0; round < 300; ++round) {
    for (std::uint64_t n = random() % 8; n != 0; --n) {
      const bool forged = random() % 4 == 0;
      guest.record(random() % 4, 0, forged ? random() >> random() % 64 : host_tsc());
    }
    if (random() % 4 == 0) guest.region.ring(random() % 4).head = random();
    if (random() % 4 == 0) guest.region.ring(random() % 4).busy = random() % 2;
    for (unsigned n = 0; n < 16; ++n) data[random() % data.size()] = std::byte(random());
    switch (random() % 8) {
      case 0: guest.replay.drain(); break;
      case 1: guest.replay.on_trap(RecordingGuest::trap(random() % 4, 0, random())); break;
      default: (void)guest.replay.pass();
    }
  }
  guest.replay.drain();

  EXPECT_GT(guest.sink.seen.size(), 100u);
  expect_in_order(guest.sink);
}

TEST(Replay, NothingFiresWhileTheDispatcherIsClosed) {
  RecordingGuest guest;
  guest.dispatcher.close();
  for (std::uint64_t id = 0; id < 4; ++id) guest.record(id, id);
  guest.replay.drain();
  guest.replay.on_trap(RecordingGuest::trap(0, 4));
  EXPECT_TRUE(guest.sink.seen.empty());
  EXPECT_EQ(guest.dispatcher.counters().closed, 5u);
  EXPECT_EQ(guest.dispatcher.tally().recorded(), 0u);

  guest.dispatcher.open();
  guest.record(0, 5);
  guest.replay.drain();

  EXPECT_EQ(guest.sink.ids(), std::vector<std::uint64_t>{5}) << "the others are over";
}

TEST(Replay, ATrapThatComesDuringTheLookDoesNotMoveTheClock) {
  RecordingGuest guest(kGigahertz, vmm::Reach::Copied);
  bool looked = false;
  guest.region.meanwhile() = [&](std::uint64_t offset) {
    if (looked || offset != guest.region.layout().rings) return;
    looked = true;
    guest.record(2, 0);
  };

  (void)guest.replay.pass();

  ASSERT_EQ(guest.region.ring(2).tail, 1u) << "it was copied";
  EXPECT_LE(guest.clock.accuracy()->offset, 0) << "both TSCs are one";
}

}  // namespace
}  // namespace ringside::providers
