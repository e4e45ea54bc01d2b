// The pause in which probes are armed: which moments are good for it, and what is given up in the
// end.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "providers/tracer/probe_armer.h"
#include "providers/trap_points/trap_points_for_tests.h"
#include "vmm/base/end_order.h"

namespace ringside::providers {
namespace {

using trap_point_fakes::TrapPoints;

/// A shim that tells of each look at it, and that some looks do not find.
class LookedAtShim final : public trap_point_fakes::FakeShim {
 public:
  Result<void> check_mapped(vmm::PausedMachine& machine) const override {
    ++looks;
    if (on_look) on_look();
    if (looks <= in_vain) return fail(ErrorCode::Invalid, "another kernel's page tables");
    return FakeShim::check_mapped(machine);
  }
  mutable unsigned looks = 0;
  unsigned in_vain = 0;  // the first ones
  std::function<void()> on_look;
};

class ArmingPause : public TrapPoints {
 protected:
  ArmingPause() { shim_.entry_of_jumps = GuestVirt(trap_point_fakes::kSlots.raw() - 0x1000); }
  ~ArmingPause() override { set_end_order(EndOrder::None); }
  void bind(std::uint64_t offset) {
    const auto site = armer_.examine(at(offset), SitePolicy::Normal);
    ASSERT_TRUE(site) << site.error().message;
    ASSERT_TRUE(armer_.bind(*site, Binding{}));
  }
  void change_text(bool changes) {
    write(trap_point_fakes::kTextMutex + guest_linux::fakes::kOwnerAt,
          std::uint64_t{changes ? 0xffff'8880'0001'0000 : 0});
  }
  /// Who stands where a jump is to be is not known the first times.
  void use_jumps_known_after(unsigned times) {
    points_.use_jumps(
        [this, times](auto&, auto) -> Result<std::vector<GuestVirt>> {
          if (++asked_ <= times) return fail(ErrorCode::Invalid, "unclear");
          return std::vector<GuestVirt>();
        },
        [](auto&, auto) { return false; });
  }

  LookedAtShim shim_;
  TrapPointTable points_{machine_, shim_, kernel_};
  UserPointTable users_{machine_, nullptr, kernel_};
  ProbeArmer armer_{machine_, shim_, points_, users_};
  unsigned asked_ = 0;
};

TEST_F(ArmingPause, IsTheFirstOneWhereNothingIsInTheWay) {
  set_end_order(EndOrder::Given);  // it is on its way already
  bind(0x005);

  ASSERT_TRUE(armer_.arm());

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
  EXPECT_EQ(shim_.looks, 2u) << "for the pause, and before the write";
}

TEST_F(ArmingPause, ComesOnceTheGuestIsDoneWithItsText) {
  bind(0x005);
  change_text(true);
  shim_.on_look = [this] { change_text(shim_.looks < 3); };

  ASSERT_TRUE(armer_.arm());

  EXPECT_EQ(shim_.looks, 4u);
  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
}

TEST_F(ArmingPause, IsNotAwaitedAgainstTheUsersOrder) {
  bind(0x005);
  change_text(true);
  set_end_order(EndOrder::Given);

  const auto armed = armer_.arm();

  ASSERT_FALSE(armed);
  EXPECT_NE(armed.error().message.find("interrupted"), std::string::npos);
  EXPECT_EQ(shim_.looks, 1u);
  EXPECT_EQ(machine_.text(0x005), std::byte{0x55});
}

TEST_F(ArmingPause, ComesOnceEachVcpuShowsTheKernelsPageTables) {
  bind(0x005);
  shim_.in_vain = 2;

  ASSERT_TRUE(armer_.arm());

  EXPECT_EQ(shim_.looks, 4u);
  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
}

TEST_F(ArmingPause, IsTakenInTheEndWhereAVcpuNeverDoesAndTellsWhatIsWrong) {
  bind(0x005);
  shim_.in_vain = 1000;

  const auto armed = armer_.arm();

  ASSERT_FALSE(armed);
  EXPECT_EQ(armed.error().message, "another kernel's page tables");
  EXPECT_EQ(shim_.looks, 51u) << "fifty, and before the write";
  EXPECT_EQ(machine_.text(0x005), std::byte{0x55});
}

TEST_F(ArmingPause, ComesOnceItIsKnownWhoStandsWhereJumpsAreToBe) {
  bind(0x005);
  use_jumps_known_after(3);

  ASSERT_TRUE(armer_.arm());

  EXPECT_EQ(asked_, 4u);
  EXPECT_EQ(machine_.text(0x005), std::byte{0xe9});
}

TEST_F(ArmingPause, MakesInt3sInTheEndWhereThatStaysUnknown) {
  bind(0x005);
  use_jumps_known_after(1000);

  ASSERT_TRUE(armer_.arm());

  EXPECT_EQ(asked_, 50u);
  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
}

TEST_F(ArmingPause, BytesAreRestoredOnceEachVcpuShowsTheKernelsPageTables) {
  bind(0x005);
  ASSERT_TRUE(armer_.arm());
  shim_.looks = 0;
  shim_.in_vain = 2;

  ASSERT_TRUE(armer_.disarm());

  EXPECT_EQ(shim_.looks, 3u);
  EXPECT_EQ(machine_.text(0x005), std::byte{0x55});
  EXPECT_TRUE(armer_.disarm()) << "nothing is left to do";
  EXPECT_EQ(shim_.looks, 3u);
}

TEST_F(ArmingPause, BytesStayWhereTheGuestHasLeftItsKernel) {
  bind(0x005);
  ASSERT_TRUE(armer_.arm());
  shim_.looks = 0;
  shim_.in_vain = 1000;
  shim_.now = vmm::ShimState::GuestLeft;

  EXPECT_FALSE(armer_.disarm());

  EXPECT_EQ(shim_.looks, 1u) << "it never comes back";
}

TEST_F(ArmingPause, BytesStayInTheEndWhereAVcpuNeverShowsThem) {
  bind(0x005);
  ASSERT_TRUE(armer_.arm());
  shim_.looks = 0;
  shim_.in_vain = 1000;

  EXPECT_FALSE(armer_.disarm());

  EXPECT_EQ(shim_.looks, 50u);
  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
}

TEST_F(ArmingPause, NoPointIsBoundOnceTracingHasBegunWithoutAny) {
  EXPECT_TRUE(armer_.take_first().added.empty());

  const auto site = armer_.examine(at(0x005), SitePolicy::Normal);
  const auto bound = armer_.bind(*site, Binding{});

  ASSERT_FALSE(bound);
  EXPECT_EQ(bound.error().code, ErrorCode::Unsupported);
  EXPECT_EQ(points_.size(), 0u);
}

TEST_F(ArmingPause, TheFirstEpochHasWhatWasBoundAndForgottenBefore) {
  bind(0x005);
  const dif::ProbeId gone{7};
  armer_.forget(std::span(&gone, 1));

  const auto first = armer_.take_first();

  ASSERT_EQ(first.added.size(), 1u);
  EXPECT_EQ(first.added[0].at, at(0x005));
  EXPECT_EQ(first.removed, std::vector{gone});
  EXPECT_TRUE(first.lost.empty());
  EXPECT_TRUE(armer_.take_first().added.empty()) << "once";
  bind(0x106);  // tracing has begun with a point
}

TEST_F(ArmingPause, APointWhoseTextTheGuestHadChangedBeginsAnew) {
  bind(0x005);
  (void)armer_.take_first();
  ASSERT_TRUE(armer_.arm());
  machine_.put(0x005, disasm::code({0x53}));
  ASSERT_EQ(points_.drop_changed(), std::vector{at(0x005)});
  points_.look_again();

  bind(0x005);

  const auto change = armer_.take_first();
  EXPECT_EQ(change.lost, std::vector{at(0x005)});
}

}  // namespace
}  // namespace ringside::providers
