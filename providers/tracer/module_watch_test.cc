#include "providers/tracer/module_watch.h"

#include <gtest/gtest.h>
#include <poll.h>

#include "providers/trap_points/trap_points_for_tests.h"

namespace ringside::providers {
namespace {

constexpr GuestVirt kPlace(0xffff'ffff'8112'3404);
constexpr GuestVirt kFirst(0xffff'ffff'c012'3000), kSecond(0xffff'ffff'c045'6000);

class Watch : public ::testing::Test {
 protected:
  explicit Watch(std::uint64_t timeout = UINT64_MAX) : watch_(timeout) {}
  static vmm::Trap trap(GuestVirt structure, std::uint64_t tsc) {
    vmm::Trap trap{kPlace, tsc, GuestVirt(), {}};
    trap.registers.rdi = structure.raw();
    return trap;
  }
  bool is_told() const {
    pollfd event{watch_.event_fd(), POLLIN, 0};
    return ::poll(&event, 1, 0) == 1;
  }

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

TEST_F(Watch, StandsWhereTheKernelIsAboutToRunAModulesInit) {
  constexpr std::uint64_t kLoader = 0x100, kHead = 5;  // behind the ftrace nop
  trap_point_fakes::FakeMachine machine;
  trap_point_fakes::FakeShim shim;
  trap_point_fakes::FakeKernel kernel;
  trap_point_fakes::NoSink sink;
  machine.put(kLoader, disasm::code({0x0f, 0x1f, 0x44, 0, 0, 0x55, 0xc3}));
  kernel.name({{0, "other"}, {kLoader, "do_init_module"}, {0x180, "end"}});
  TrapPointTable table(machine, shim, kernel);
  vmm::TrapHandlers handlers(sink);

  const auto prepared = watch_.prepare(kernel, table);
  ASSERT_TRUE(prepared) << prepared.error().message;
  watch_.add_to(handlers);

  const GuestVirt place = trap_point_fakes::kText.wrapping_add(kLoader + kHead);
  EXPECT_EQ(table.size(), 1u);
  EXPECT_EQ(handlers.watches_at(place).size(), 1u);
  EXPECT_TRUE(handlers.watches_at(trap_point_fakes::kText.wrapping_add(kHead)).empty());
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
