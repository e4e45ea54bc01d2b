#include "providers/tracer/hibernation_watch.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <vector>

namespace ringside::providers {
namespace {

constexpr GuestVirt kHibernate(0xffff'ffff'8112'3404), kHibernationSnapshot(0xffff'ffff'8112'5404);
constexpr GuestVirt kOtherTrap(0xffff'ffff'8112'3500);

class KeepingNext final : public vmm::TrapSink {
 public:
  void on_trap(const vmm::Trap& trap) override { traps.push_back(trap.address); }
  bool needs_poller(GuestVirt address) const override { return address == kOtherTrap; }
  bool keeps(const vmm::Trap& trap) override { return trap.address == kOtherTrap; }
  std::vector<GuestVirt> traps;
};

vmm::Trap trap(GuestVirt at) {
  return {at, 1, GuestVirt(), {}};
}

bool is_told(const HibernationWatch& watch) {
  pollfd event{watch.event_fd(), POLLIN, 0};
  return ::poll(&event, 1, 0) == 1;
}

TEST(HibernationWatch, KeepsWhoSuspendsTheGuestUntilItEnds) {
  KeepingNext next;
  HibernationWatch watch(UINT64_MAX);
  watch.forward_to(next);
  watch.watch(kHibernate);
  watch.watch(kHibernationSnapshot);
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
  KeepingNext next;
  HibernationWatch watch(0);
  watch.forward_to(next);
  watch.watch(kHibernate);

  EXPECT_FALSE(watch.keeps(trap(kHibernate)));

  EXPECT_TRUE(watch.has_begun());
}

TEST(HibernationWatch, LeavesAllElseToTheNext) {
  KeepingNext next;
  HibernationWatch watch;
  watch.forward_to(next);
  watch.watch(kHibernate);

  EXPECT_TRUE(watch.keeps(trap(kOtherTrap)));
  EXPECT_TRUE(watch.needs_poller(kOtherTrap));
  EXPECT_TRUE(watch.needs_poller(kHibernate));
  EXPECT_FALSE(watch.needs_poller(kHibernationSnapshot));
  watch.on_trap(trap(kHibernate));

  EXPECT_EQ(next.traps, std::vector<GuestVirt>{kHibernate});
  EXPECT_FALSE(watch.has_begun());
}

}  // namespace
}  // namespace ringside::providers
