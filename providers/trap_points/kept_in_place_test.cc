#include <gtest/gtest.h>

#include "providers/trap_points/jump_planner.h"
#include "providers/trap_points/jumps_for_tests.h"

namespace ringside::providers {
namespace {

using namespace trap_point_fakes;

/// The guest would never come by it: what runs is a copy.
TEST_F(Jumps, LeaveInItsPlaceWhatAHardwareBreakpointStandsOn) {
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  ASSERT_TRUE(target(0x005));
  EXPECT_FALSE(table_.has_displaced(at(0x005))) << "the jump itself is there";
  EXPECT_TRUE(table_.has_displaced(at(0x006))) << "lea";
  EXPECT_FALSE(table_.has_displaced(at(0x00d))) << "ret, where it comes back";
  auto paused = pause();

  ASSERT_TRUE(table_.keep_in_place(paused, at(0x006)));

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
  EXPECT_EQ(machine_.text(0x006), original_[1]);
  EXPECT_TRUE(shim_.entries.contains(at(0x005)));
  EXPECT_FALSE(table_.has_displaced(at(0x006)));
  disarm();
  arm_jumps();
  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc}) << "it stays so";
}

TEST_F(Jumps, AreInt3sWhereAHardwareBreakpointWasBefore) {
  constexpr std::uint64_t kEnabled = 0x110000, kAddresses = 0x110040;
  for (const std::uint64_t enabled : {0x400, 0x402}) {
    FakeMachine machine;
    for (std::uint64_t n = 0; n < 16; ++n) machine.put(n, {machine_.text(n)});
    const auto put = [&machine](std::uint64_t offset, std::uint64_t value) {
      const auto bytes = std::as_bytes(std::span(&value, 1));
      machine.put(offset, {bytes.begin(), bytes.end()});
    };
    put(kEnabled, enabled);
    put(kAddresses, at(0x006).raw());
    FakeKernel kernel;
    kernel.bases = {0};
    kernel.name(
        {{0x000, "f"}, {0x100, "end"}, {kEnabled, "cpu_dr7"}, {kAddresses, "cpu_debugreg"}});

    EXPECT_EQ(armed_in(machine, kernel, 0x005),
              enabled == 0x400 ? std::byte{0xe9} : std::byte{0xcc});
  }
}

TEST_F(Jumps, AreInt3sOnceTheGuestHasSetMoreHardwareBreakpointsThanAreKept) {
  const auto site = table_.examine(at(0x005));
  ASSERT_TRUE(site);
  TrapPoint point(*site, kSlots);
  const Jump jump{.run = {}, .record = {}, .code = {}};
  point.jump = &jump;
  KeptInPlace kept(kernel_);
  for (std::uint64_t n = 0; n < kMostInPlace - 1; ++n) kept.add(at(0x1000 + n));

  kept.add(at(0x1000));
  EXPECT_FALSE(kept.forbids(point)) << "all are elsewhere, and that one is known";

  kept.add(at(0x800));
  EXPECT_TRUE(kept.forbids(point));
}

}  // namespace
}  // namespace ringside::providers
