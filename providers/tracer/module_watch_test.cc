#include "providers/tracer/module_watch.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <vector>

namespace ringside::providers {
namespace {

constexpr GuestVirt kPlace(0xffff'ffff'8112'3404), kElsewhere(0xffff'ffff'8112'3500);
constexpr GuestVirt kFirst(0xffff'ffff'c012'3000), kSecond(0xffff'ffff'c045'6000);

class PolledNext final : public vmm::TrapSink {
 public:
  void on_trap(const vmm::Trap& trap) override { traps.push_back(trap.address); }
  bool needs_poller(GuestVirt address) const override { return address == kElsewhere; }
  std::vector<GuestVirt> traps;
};

class Watch : public ::testing::Test {
 protected:
  explicit Watch(std::uint64_t timeout = UINT64_MAX) : watch_(timeout) {
    watch_.forward_to(next_);
    watch_.watch(kPlace);
  }
  static vmm::Trap trap(GuestVirt structure, std::uint64_t tsc, GuestVirt at = kPlace) {
    vmm::Trap trap{at, tsc, GuestVirt(), {}};
    trap.registers.rdi = structure.raw();
    return trap;
  }
  bool is_told() const {
    pollfd event{watch_.event_fd(), POLLIN, 0};
    return ::poll(&event, 1, 0) == 1;
  }

  PolledNext next_;
  ModuleWatch watch_;
};

struct ImpatientWatch : Watch {
  ImpatientWatch() : Watch(0) {}
};

TEST_F(Watch, KeepsWhoLoadsAModuleUntilItIsLetGo) {
  EXPECT_FALSE(is_told());
  EXPECT_TRUE(watch_.keeps(trap(kFirst, 1)));
  EXPECT_TRUE(is_told());
  EXPECT_EQ(watch_.take(), kFirst);
  EXPECT_FALSE(is_told());
  EXPECT_EQ(watch_.take(), std::nullopt) << "it was taken";
  EXPECT_TRUE(watch_.keeps(trap(kFirst, 1)));

  EXPECT_TRUE(watch_.let_go(kFirst));

  EXPECT_FALSE(watch_.keeps(trap(kFirst, 1)));
  EXPECT_EQ(watch_.take(), std::nullopt);
}

TEST_F(Watch, KeepsSeveralAtOnceAndLetsEachGoByItself) {
  EXPECT_TRUE(watch_.keeps(trap(kFirst, 1)));
  EXPECT_TRUE(watch_.keeps(trap(kSecond, 2)));
  EXPECT_EQ(watch_.take(), kFirst);
  EXPECT_EQ(watch_.take(), kSecond);

  EXPECT_TRUE(watch_.let_go(kSecond));

  EXPECT_TRUE(watch_.keeps(trap(kFirst, 1)));
  EXPECT_FALSE(watch_.keeps(trap(kSecond, 2)));
}

TEST_F(Watch, TheSameModuleOnceMoreIsKeptAgain) {
  EXPECT_TRUE(watch_.keeps(trap(kFirst, 1)));
  EXPECT_EQ(watch_.take(), kFirst);
  EXPECT_TRUE(watch_.let_go(kFirst)) << "and its shim gives up waiting before it hears of it";

  EXPECT_TRUE(watch_.keeps(trap(kFirst, 2)));
  EXPECT_TRUE(is_told());
  EXPECT_EQ(watch_.take(), kFirst);
  EXPECT_TRUE(watch_.let_go(kFirst));
  EXPECT_FALSE(watch_.keeps(trap(kFirst, 2)));
}

TEST_F(Watch, ADifferentOneAtTheSamePlaceIsNotLetGoForTheFormer) {
  EXPECT_TRUE(watch_.keeps(trap(kFirst, 1)));
  EXPECT_EQ(watch_.take(), kFirst);
  EXPECT_TRUE(watch_.keeps(trap(kFirst, 2)));

  EXPECT_FALSE(watch_.let_go(kFirst));

  EXPECT_TRUE(watch_.keeps(trap(kFirst, 2)));
  EXPECT_EQ(watch_.take(), kFirst);
}

TEST_F(Watch, AllOtherTrapsAreTheNextOnes) {
  EXPECT_FALSE(watch_.keeps(trap(kFirst, 1, kElsewhere)));
  EXPECT_FALSE(is_told());
  EXPECT_TRUE(watch_.needs_poller(kPlace));
  EXPECT_TRUE(watch_.needs_poller(kElsewhere));
  EXPECT_FALSE(watch_.needs_poller(kFirst));

  watch_.on_trap(trap(kFirst, 1, kElsewhere));
  watch_.on_trap(trap(kFirst, 1));

  EXPECT_EQ(next_.traps, (std::vector{kElsewhere, kPlace})) << "a probe may stand there, too";
}

TEST_F(Watch, KeepsNobodyOnceItHasEnded) {
  EXPECT_TRUE(watch_.keeps(trap(kFirst, 1)));

  watch_.end();

  EXPECT_FALSE(watch_.keeps(trap(kFirst, 1)));
  EXPECT_FALSE(watch_.keeps(trap(kSecond, 2)));
}

TEST_F(Watch, AGuestThatLoadsForEverTakesNoMemoryForIt) {
  for (std::uint64_t n = 0; n < ModuleWatch::kMostWaiting; ++n) {
    EXPECT_TRUE(watch_.keeps(trap(GuestVirt(n), n)));
  }

  EXPECT_FALSE(watch_.keeps(trap(kFirst, 1))) << "it goes on unseen";
  EXPECT_EQ(watch_.take(), GuestVirt(0));
}

TEST_F(ImpatientWatch, WhoHasWaitedTooLongGoesOnAndThatIsKnown) {
  EXPECT_TRUE(watch_.keeps(trap(kFirst, 1)));
  EXPECT_FALSE(watch_.keeps(trap(kFirst, 1)));

  EXPECT_EQ(watch_.take(), kFirst) << "it gets its probes all the same";
  EXPECT_FALSE(watch_.let_go(kFirst));
}

}  // namespace
}  // namespace ringside::providers
