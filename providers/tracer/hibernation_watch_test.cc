#include "providers/tracer/hibernation_watch.h"

#include <gtest/gtest.h>
#include <poll.h>

#include "providers/trap_points/trap_points_for_tests.h"

namespace ringside::providers {
namespace {

constexpr GuestVirt kHibernate(0xffff'ffff'8112'3404), kHibernationSnapshot(0xffff'ffff'8112'5404);

vmm::Trap trap(GuestVirt at) {
  return {at, 1, GuestVirt(), {}};
}

bool is_told(const HibernationWatch& watch) {
  pollfd event{watch.event_fd(), POLLIN, 0};
  return ::poll(&event, 1, 0) == 1;
}

TEST(HibernationWatch, KeepsWhoSuspendsTheGuestUntilItEnds) {
  HibernationWatch watch(UINT64_MAX);
  EXPECT_FALSE(watch.has_begun());
  EXPECT_FALSE(is_told(watch));

  EXPECT_TRUE(watch.keeps(trap(kHibernationSnapshot)));

  EXPECT_TRUE(watch.has_begun());
  EXPECT_TRUE(is_told(watch));
  EXPECT_TRUE(watch.keeps(trap(kHibernationSnapshot)));
  watch.end();
  EXPECT_FALSE(watch.keeps(trap(kHibernationSnapshot)));
  EXPECT_FALSE(watch.keeps(trap(kHibernate)));
}

TEST(HibernationWatch, KeepsNobodyForLong) {
  HibernationWatch watch(0);

  EXPECT_FALSE(watch.keeps(trap(kHibernate)));

  EXPECT_TRUE(watch.has_begun());
}

TEST(HibernationWatch, StandsWhereTheKernelBeginsAndWhereItMakesTheImage) {
  constexpr std::uint64_t kHead = 5;  // the ftrace nop
  trap_point_fakes::FakeMachine machine;
  trap_point_fakes::FakeShim shim;
  trap_point_fakes::FakeKernel kernel;
  trap_point_fakes::NoSink sink;
  for (const std::uint64_t offset : {0x000, 0x080, 0x100}) {
    machine.put(offset, disasm::code({0x0f, 0x1f, 0x44, 0, 0, 0x55, 0xc3}));
  }
  kernel.name(
      {{0x000, "hibernate"}, {0x080, "other"}, {0x100, "hibernation_snapshot"}, {0x180, "end"}});
  TrapPointTable table(machine, shim, kernel);
  vmm::TrapHandlers handlers(sink);
  HibernationWatch watch;

  const auto prepared = watch.prepare(kernel, table);
  ASSERT_TRUE(prepared) << prepared.error().message;
  watch.add_to(handlers);

  const auto at = [](std::uint64_t offset) { return trap_point_fakes::kText.wrapping_add(offset); };
  EXPECT_EQ(table.size(), 2u);
  EXPECT_EQ(handlers.watches_at(at(kHead)).size(), 1u);
  EXPECT_EQ(handlers.watches_at(at(0x100 + kHead)).size(), 1u);
  EXPECT_TRUE(handlers.watches_at(at(0x080 + kHead)).empty());
  EXPECT_FALSE(watch.has_begun());
}

}  // namespace
}  // namespace ringside::providers
