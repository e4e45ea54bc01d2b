// The fire loop where a guest records: what was recorded fires before what comes after it.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "providers/fire/fire_loop.h"
#include "providers/testing/loop_for_tests.h"
#include "providers/testing/recording_guest.h"

namespace ringside::providers {
namespace {

constexpr dif::ProbeId kLoopBegins{1}, kLoopEnds{2}, kTicks{3};

/// While a loop runs, its thread alone touches the guest: the test does so in firings.
struct RecordingLoop {
  explicit RecordingLoop(std::uint64_t hertz = kGigahertz) : guest(hertz) {}

  FireLoopParts parts() {
    FireLoopParts made{
        .sink = guest.sink, .clock = guest.clock, .begin = kLoopBegins, .end = kLoopEnds};
    made.traps.emplace(ShimTraps{shim, handlers});
    made.replay = &guest.replay;
    made.expects_waits = false;
    made.gates = {&guest.dispatcher};
    return made;
  }
  dif::ProbeId fires() const { return guest.sink.seen.back().probe; }

  RecordingGuest guest;
  FakeShim shim;
  vmm::TrapHandlers handlers{guest.replay};
};

TEST(RecordingFireLoop, WhatWasRecordedFiresBeforeEnd) {
  RecordingLoop on(100'000 * kGigahertz);  // passes keep records back for 0.8 s
  on.guest.sink.during = [&](const dif::GuestContext&) {
    if (on.fires() != kLoopBegins) return;
    for (std::uint64_t id = 0; id < 8; ++id) on.guest.record(id % 4, id);
  };
  FireLoop loop(on.parts());

  loop.start();
  loop.close();
  loop.finish();

  const auto& seen = on.guest.sink.seen;
  ASSERT_EQ(seen.size(), 10u);
  EXPECT_EQ(seen.front().probe, kLoopBegins);
  EXPECT_EQ(seen.back().probe, kLoopEnds);
  auto ids = on.guest.sink.ids();
  std::sort(ids.begin() + 1, ids.end() - 1);
  for (std::uint64_t id = 0; id < 8; ++id) EXPECT_EQ(ids[id + 1], id);
  EXPECT_FALSE(on.shim.active);
  EXPECT_EQ(on.guest.dispatcher.counters().closed, 0u);
}

TEST(RecordingFireLoop, WhatWasRecordedFiresBeforeATick) {
  RecordingLoop on(10'000 * kGigahertz);  // passes keep records back for 80 ms
  std::atomic<unsigned> ticks = 0;
  on.guest.sink.during = [&](const dif::GuestContext&) {
    if (on.fires() == kTicks) ++ticks;
    if (on.fires() != kLoopBegins) return;
    for (std::uint64_t id = 0; id < 8; ++id) on.guest.record(id % 4, id);
  };
  FireLoopParts parts = on.parts();
  parts.timers = {tick(kTicks.value)};
  FireLoop loop(std::move(parts));

  loop.start();
  loop.open_traps();
  loop.open_timers();
  ASSERT_TRUE(eventually([&] { return ticks > 0; }));
  loop.close();
  loop.finish();

  const auto& seen = on.guest.sink.seen;
  ASSERT_GE(seen.size(), 11u);
  for (std::size_t n = 1; n <= 8; ++n) EXPECT_EQ(seen[n].probe, kRecordedProbe) << n;
  EXPECT_EQ(seen[9].probe, kTicks);
  EXPECT_LE(seen[8].record.timestamp, seen[9].record.timestamp);
}

TEST(RecordingFireLoop, WhatWasRecordedFiresBeforeATrapThatWaits) {
  RecordingLoop on;
  on.shim.address = RecordingGuest::kRecordedAt;
  on.guest.sink.during = [&](const dif::GuestContext&) {
    if (on.fires() != kLoopBegins) return;
    on.guest.record(2, 1);
    on.shim.raise = true;  // the loop polls before it looks at rings
  };
  FireLoop loop(on.parts());

  loop.start();
  ASSERT_TRUE(eventually([&] { return on.shim.polled > 0; }));
  on.shim.raise = false;
  loop.close();
  loop.finish();

  const auto& seen = on.guest.sink.seen;
  ASSERT_GE(seen.size(), 4u);
  EXPECT_EQ(seen[1].id, 1u);
  EXPECT_EQ(seen[1].record.vcpu, 1u);
  EXPECT_EQ(seen[2].probe, kRecordedProbe);
  EXPECT_EQ(seen[2].record.vcpu, 0u) << "the trap";
}

TEST(RecordingFireLoop, WhatWasRecordedFiresWithoutAnythingElse) {
  RecordingLoop on;
  std::atomic<bool> fired = false;
  on.guest.sink.during = [&](const dif::GuestContext&) {
    if (on.fires() == kLoopBegins) on.guest.record(0, 5);
    if (on.fires() == kRecordedProbe) fired = true;
  };
  FireLoop loop(on.parts());

  loop.start();

  EXPECT_TRUE(eventually([&] { return fired.load(); }));
}

}  // namespace
}  // namespace ringside::providers
