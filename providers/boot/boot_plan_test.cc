#include "providers/boot/boot_plan.h"

#include <gtest/gtest.h>

namespace ringside::providers {
namespace {

using Moment = BootPlan::Moment;
using Set = std::vector<GuestVirt>;

constexpr GuestVirt kMapped(0x100), kTrapping(0x200), kPatched(0x300), kFreed(0x400);

BootPlan::Markers linux_markers() {
  return {std::nullopt, kMapped, kTrapping, kPatched, kFreed};
}

/// Points at 0x1000, 0x2000...
std::vector<BootPoints::Point> points(std::size_t count) {
  std::vector<BootPoints::Point> all;
  for (std::size_t i = 1; i <= count; ++i) all.push_back({GuestVirt(i << 12), false, false});
  return all;
}

Set addresses(std::initializer_list<std::uint64_t> all) {
  Set set;
  for (const std::uint64_t at : all) set.emplace_back(at);
  return set;
}

TEST(BootPlan, AFewPointsAreWatchedFromTheFirstInstruction) {
  const BootPlan three(points(3), linux_markers());
  const BootPlan four(points(4), linux_markers());

  EXPECT_EQ(three.start().wanted, addresses({0x1000, 0x2000, 0x3000, kPatched.raw()}));
  EXPECT_EQ(four.start().wanted, addresses({0x1000, 0x2000, 0x3000, 0x4000}));
  EXPECT_FALSE(four.notice());
}

TEST(BootPlan, ManyStartWithThreeAndAMarker) {
  const BootPlan plan(points(9), linux_markers());

  EXPECT_EQ(plan.start().wanted, addresses({0x1000, 0x2000, 0x3000, kMapped.raw()}));
  EXPECT_TRUE(plan.notice());
}

TEST(BootPlan, TextThatTheKernelRewritesWaitsUntilItHas) {
  auto all = points(5);
  all[0].patched_at_boot = true;
  BootPlan plan(all, linux_markers());
  plan.made(plan.start(), true);

  const auto mapped = plan.at(kMapped);
  ASSERT_TRUE(mapped);
  EXPECT_EQ(mapped->wanted, addresses({0x2000, 0x3000, 0x4000, 0x5000, kPatched.raw()}));
  EXPECT_EQ(mapped->instead, addresses({0x1000, 0x2000, 0x3000, kTrapping.raw()}));
  plan.made(*mapped, true);

  const auto patched = plan.at(kPatched);
  ASSERT_TRUE(patched);
  EXPECT_EQ(patched->wanted, addresses({0x1000, 0x2000, 0x3000, 0x4000, 0x5000, kFreed.raw()}));
}

TEST(BootPlan, InitTextIsLeftBeforeItIsFreed) {
  auto all = points(5);
  all[4].is_init = true;
  const BootPlan plan(all, linux_markers());

  const auto freed = plan.at(kFreed);

  ASSERT_TRUE(freed);
  EXPECT_EQ(freed->wanted, addresses({0x1000, 0x2000, 0x3000, 0x4000}));
}

TEST(BootPlan, AMomentComesOnce) {
  BootPlan plan(points(5), linux_markers());
  plan.made(*plan.at(kPatched), true);

  EXPECT_FALSE(plan.at(kPatched));
  EXPECT_FALSE(plan.at(kMapped));
  EXPECT_FALSE(plan.at(GuestVirt(0x1000)));
  EXPECT_TRUE(plan.at(kFreed));
}

TEST(BootPlan, FourPointsLeaveTheRegistersWhenTheKernelSaysItIsFarEnough) {
  BootPlan plan(points(4), linux_markers());
  plan.made(plan.start(), true);
  ASSERT_TRUE(plan.asks_system_state());

  EXPECT_FALSE(plan.at(GuestVirt(0x1000), std::nullopt)) << "its memory is not mapped yet";
  EXPECT_FALSE(plan.at(GuestVirt(0x1000), 0)) << "SYSTEM_BOOTING";
  const auto step = plan.at(GuestVirt(0x1000), 1);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->moment, Moment::Patched);
  EXPECT_EQ(step->wanted, addresses({0x1000, 0x2000, 0x3000, 0x4000, kFreed.raw()}));
  EXPECT_EQ(step->instead, addresses({0x1000, 0x2000, 0x3000, 0x4000}));
  plan.made(*step, true);

  EXPECT_FALSE(plan.asks_system_state());
  EXPECT_TRUE(plan.at(kFreed));
}

TEST(BootPlan, FourPointsOfWhichOneIsInitTextStayInRegistersUntilItIsFreed) {
  auto all = points(4);
  all[1].is_init = true;
  BootPlan plan(all, linux_markers());
  plan.made(plan.start(), true);

  EXPECT_FALSE(plan.at(GuestVirt(0x1000), 1));
  const auto freed = plan.at(GuestVirt(0x1000), 2);
  ASSERT_TRUE(freed);
  EXPECT_EQ(freed->moment, Moment::Freed);
  EXPECT_EQ(freed->wanted, addresses({0x1000, 0x3000, 0x4000}));
}

TEST(BootPlan, AnotherKernelIsTriedAgainAtEachHitAndNotForEver) {
  BootPlan plan(points(6), {});

  EXPECT_EQ(plan.start().wanted.size(), 6u);
  EXPECT_EQ(plan.start().instead, addresses({0x1000, 0x2000, 0x3000, 0x4000}));
  for (int tries = 0; tries < 64; ++tries) {
    const auto step = plan.at(GuestVirt(0x1000));
    ASSERT_TRUE(step);
    plan.made(*step, false);
  }
  EXPECT_FALSE(plan.at(GuestVirt(0x1000)));
}

TEST(BootPlan, AnotherKernelThatTookAllIsLeftAlone) {
  BootPlan plan(points(6), {});
  plan.made(plan.start(), true);

  EXPECT_FALSE(plan.at(GuestVirt(0x1000)));
}

}  // namespace
}  // namespace ringside::providers
