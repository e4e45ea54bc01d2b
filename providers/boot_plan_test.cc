#include "providers/boot_plan.h"

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
  plan.made(GuestVirt(), true);

  const auto mapped = plan.at(kMapped);
  ASSERT_TRUE(mapped);
  EXPECT_EQ(mapped->wanted, addresses({0x2000, 0x3000, 0x4000, 0x5000, kPatched.raw()}));
  EXPECT_EQ(mapped->instead, addresses({0x1000, 0x2000, 0x3000, kTrapping.raw()}));
  plan.made(kMapped, true);

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
  plan.made(kPatched, true);

  EXPECT_FALSE(plan.at(kPatched));
  EXPECT_FALSE(plan.at(kMapped));
  EXPECT_FALSE(plan.at(GuestVirt(0x1000)));
  EXPECT_TRUE(plan.at(kFreed));
}

TEST(BootPlan, AnotherKernelIsTriedAgainAtEachHitAndNotForEver) {
  BootPlan plan(points(6), {});

  EXPECT_EQ(plan.start().wanted.size(), 6u);
  EXPECT_EQ(plan.start().instead, addresses({0x1000, 0x2000, 0x3000, 0x4000}));
  for (int tries = 0; tries < 64; ++tries) {
    ASSERT_TRUE(plan.at(GuestVirt(0x1000)));
    plan.made(GuestVirt(0x1000), false);
  }
  EXPECT_FALSE(plan.at(GuestVirt(0x1000)));
}

TEST(BootPlan, AnotherKernelThatTookAllIsLeftAlone) {
  BootPlan plan(points(6), {});
  plan.made(GuestVirt(), true);

  EXPECT_FALSE(plan.at(GuestVirt(0x1000)));
}

}  // namespace
}  // namespace ringside::providers
