#include "providers/tracer/hibernation_watch.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <vector>

namespace ringside::providers {
namespace {

constexpr GuestVirt kPlace(0xffff'ffff'8112'3404), kOther(0xffff'ffff'8112'5404);
constexpr GuestVirt kElsewhere(0xffff'ffff'8112'3500);

class KeepingNext final : public vmm::TrapSink {
 public:
  void on_trap(const vmm::Trap& trap) override { traps.push_back(trap.address); }
  bool needs_poller(GuestVirt address) const override { return address == kElsewhere; }
  bool keeps(const vmm::Trap& trap) override { return trap.address == kElsewhere; }
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
  watch.watch(kPlace);
  watch.watch(kOther);
  EXPECT_FALSE(watch.has_begun());
  EXPECT_FALSE(is_told(watch));

  EXPECT_TRUE(watch.keeps(trap(kOther)));

  EXPECT_TRUE(watch.has_begun());
  EXPECT_TRUE(is_told(watch));
  EXPECT_TRUE(watch.keeps(trap(kOther)));
  watch.end();
  EXPECT_FALSE(watch.keeps(trap(kOther)));
  EXPECT_FALSE(watch.keeps(trap(kPlace)));
}

TEST(HibernationWatch, KeepsNobodyForLong) {
  KeepingNext next;
  HibernationWatch watch(0);
  watch.forward_to(next);
  watch.watch(kPlace);

  EXPECT_FALSE(watch.keeps(trap(kPlace)));

  EXPECT_TRUE(watch.has_begun());
}

TEST(HibernationWatch, LeavesAllElseToTheNext) {
  KeepingNext next;
  HibernationWatch watch;
  watch.forward_to(next);
  watch.watch(kPlace);

  EXPECT_TRUE(watch.keeps(trap(kElsewhere)));
  EXPECT_TRUE(watch.needs_poller(kElsewhere));
  EXPECT_TRUE(watch.needs_poller(kPlace));
  EXPECT_FALSE(watch.needs_poller(kOther));
  watch.on_trap(trap(kPlace));

  EXPECT_EQ(next.traps, std::vector<GuestVirt>{kPlace});
  EXPECT_FALSE(watch.has_begun());
}

}  // namespace
}  // namespace ringside::providers
