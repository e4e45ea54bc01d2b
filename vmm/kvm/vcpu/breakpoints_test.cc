#include "vmm/kvm/vcpu/breakpoints.h"

#include <gtest/gtest.h>
#include <linux/kvm.h>

#include <set>
#include <vector>

namespace ringside::vmm::kvm {
namespace {

std::vector<GuestVirt> at(std::initializer_list<std::uint64_t> addresses) {
  std::vector<GuestVirt> all;
  for (const std::uint64_t address : addresses) all.emplace_back(address);
  return all;
}

bool takes(std::vector<std::uint8_t> code) {
  return takes_port_write(std::as_bytes(std::span(code)));
}

/// 64 KiB of RAM at 0, mapped one to one but for the page at 0x2000.
class BreakpointsTest : public ::testing::Test {
 protected:
  BreakpointsTest() : ram_(64 << 10), memory_({{GuestPhys(0), ram_}}) {}

  Breakpoints make(TrapRoute route, bool watches = true) {
    return Breakpoints(memory_, {route, watches, false});
  }
  Result<void> replace(Breakpoints& breakpoints, std::vector<GuestVirt> addresses) {
    return breakpoints.replace(addresses, [](GuestVirt address) -> std::optional<GuestPhys> {
      if (address.raw() / 4096 == 2) return std::nullopt;
      return GuestPhys(address.raw());
    });
  }
  void put(std::size_t address, std::vector<std::uint8_t> code) {
    for (const std::uint8_t byte : code) ram_[address++] = std::byte{byte};
  }
  unsigned byte(std::size_t address) const { return std::to_integer<unsigned>(ram_[address]); }

  std::vector<std::byte> ram_;
  GuestMemory memory_;
};

TEST(PlanBreakpoints, WatchesWhatTakesNoBytesAndCountsEachAddressOnce) {
  const auto plan = plan_breakpoints(
      at({0x30, 0x10, 0x30, 0x20}), [](GuestVirt a) { return a.raw() != 0x20; }, 4);

  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->bytes, at({0x10, 0x30}));
  EXPECT_EQ(plan->watched, at({0x20}));
}

TEST(PlanBreakpoints, SaysWhatIsMissing) {
  const auto none = [](GuestVirt) { return false; };

  const auto five = plan_breakpoints(at({1, 2, 3, 4, 5}), none, 4);
  const auto one = plan_breakpoints(at({1}), none, 0);

  ASSERT_FALSE(five);
  EXPECT_EQ(five.error().code, ErrorCode::Limit);
  ASSERT_FALSE(one);
  EXPECT_EQ(one.error().code, ErrorCode::Invalid);
  EXPECT_TRUE(plan_breakpoints(at({1, 2, 3, 4}), none, 4));
}

TEST(TakesPortWrite, NotWhereTheSecondByteMayBeAnotherBlocks) {
  EXPECT_TRUE(takes({0x0f, 0x1f}));
  EXPECT_TRUE(takes({0x55, 0x48}));
  EXPECT_TRUE(takes({0xc3, 0xcc}));
  EXPECT_TRUE(takes({0xc3, 0x90}));
  EXPECT_FALSE(takes({0xc3, 0x48}));
  EXPECT_FALSE(takes({0xf4, 0xcc}));
  EXPECT_FALSE(takes({0x55}));
}

TEST_F(BreakpointsTest, AreBytesInRamThatGoAwayAgain) {
  put(0x1000, {0x55, 0x48});
  Breakpoints breakpoints = make(TrapRoute::Intercepted);

  ASSERT_TRUE(replace(breakpoints, at({0x1000})));
  EXPECT_EQ(byte(0x1000), 0xccu);
  EXPECT_EQ(byte(0x1001), 0x48u);
  EXPECT_EQ(breakpoints.find(GuestVirt(0x1000)), Breakpoints::Found::Byte);
  EXPECT_EQ(breakpoints.setup().control,
            std::uint32_t{KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_USE_SW_BP});

  ASSERT_TRUE(replace(breakpoints, {}));
  EXPECT_EQ(byte(0x1000), 0x55u);
  EXPECT_EQ(breakpoints.setup().control, 0u);
}

TEST_F(BreakpointsTest, ThatStayKeepWhatStoodThereBefore) {
  put(0x1000, {0x55});
  put(0x1100, {0x90});
  Breakpoints breakpoints = make(TrapRoute::Emulated);
  ASSERT_TRUE(replace(breakpoints, at({0x1000})));

  ASSERT_TRUE(replace(breakpoints, at({0x1000, 0x1100})));
  ASSERT_TRUE(replace(breakpoints, {}));

  EXPECT_EQ(byte(0x1000), 0x55u);
  EXPECT_EQ(byte(0x1100), 0x90u);
}

TEST_F(BreakpointsTest, LeaveCodeAloneThatTheGuestWroteOverThem) {
  put(0x1000, {0x55});
  Breakpoints breakpoints = make(TrapRoute::Intercepted);
  ASSERT_TRUE(replace(breakpoints, at({0x1000})));
  put(0x1000, {0x90});

  ASSERT_TRUE(replace(breakpoints, {}));

  EXPECT_EQ(byte(0x1000), 0x90u);
}

TEST_F(BreakpointsTest, InUnmappedMemoryStandInDebugRegisters) {
  Breakpoints breakpoints = make(TrapRoute::Intercepted);

  ASSERT_TRUE(replace(breakpoints, at({0x1000, 0x2000, 0x2008})));

  const DebugSetup setup = breakpoints.setup();
  EXPECT_EQ(setup.addresses[0], 0x2000u);
  EXPECT_EQ(setup.addresses[1], 0x2008u);
  EXPECT_EQ(setup.dr7, 0x40fu);
  EXPECT_EQ(breakpoints.find(GuestVirt(0x2008)), Breakpoints::Found::Watched);
}

TEST_F(BreakpointsTest, ThatCannotAllBeSetChangeNothing) {
  put(0x1000, {0x55});
  Breakpoints breakpoints = make(TrapRoute::Intercepted, false);

  EXPECT_FALSE(replace(breakpoints, at({0x1000, 0x2000})));

  EXPECT_EQ(byte(0x1000), 0x55u);
  EXPECT_EQ(breakpoints.find(GuestVirt(0x1000)), Breakpoints::Found::Nothing);
}

TEST_F(BreakpointsTest, ByPortAreTwoBytesThatAReaderOfCodeDoesNotSee) {
  put(0x1000, {0x55, 0x48, 0x89, 0xe5});
  Breakpoints breakpoints = make(TrapRoute::ToGuest);
  ASSERT_TRUE(replace(breakpoints, at({0x1000, 0x1001})));
  EXPECT_EQ(byte(0x1000), 0xe6u);
  EXPECT_EQ(byte(0x1001), unsigned{Breakpoints::kTrapPort});
  EXPECT_EQ(breakpoints.find(GuestVirt(0x1001)), Breakpoints::Found::Watched)
      << "two of them may not overlap";

  std::array<std::byte, 3> code{ram_[0x1001], ram_[0x1002], ram_[0x1003]};
  breakpoints.hide(GuestVirt(0x1001), code);

  EXPECT_EQ(code[0], std::byte{0x48});
  EXPECT_EQ(code[1], std::byte{0x89});
}

TEST_F(BreakpointsTest, OfTwoBytesAreFoundByWhoStoodBetweenThem) {
  put(0x1000, {0x55, 0x48, 0x89, 0xe5});
  put(0x1010, {0x55, Breakpoints::kTrapPort, 0x10});
  Breakpoints breakpoints = make(TrapRoute::ToGuest);
  ASSERT_TRUE(replace(breakpoints, at({0x1000, 0x1010})));

  EXPECT_EQ(breakpoints.split_at(GuestVirt(0x1001)), GuestVirt(0x1000));
  EXPECT_FALSE(breakpoints.split_at(GuestVirt(0x1000)));
  EXPECT_FALSE(breakpoints.split_at(GuestVirt(0)));
  EXPECT_FALSE(breakpoints.split_at(GuestVirt(0x1011))) << "an `out` of the guest's own";
  breakpoints.lift(GuestVirt(0x1000));
  EXPECT_FALSE(breakpoints.split_at(GuestVirt(0x1001))) << "not while it is lifted";

  Breakpoints single = make(TrapRoute::Intercepted);
  ASSERT_TRUE(replace(single, at({0x1000})));
  EXPECT_FALSE(single.split_at(GuestVirt(0x1001)));
}

TEST_F(BreakpointsTest, AreMetUnderAnotherAddressToo) {
  Breakpoints breakpoints = make(TrapRoute::Intercepted);
  ASSERT_TRUE(replace(breakpoints, at({0x1000, 0x1100})));
  const auto locate = [](GuestVirt address) {
    return std::optional(GuestPhys(address.raw() % 0x8000));
  };

  EXPECT_EQ(breakpoints.met_at(GuestVirt(0x1100), locate), GuestVirt(0x1100));
  EXPECT_EQ(breakpoints.met_at(GuestVirt(0x9100), locate), GuestVirt(0x1100));
  EXPECT_FALSE(breakpoints.met_at(GuestVirt(0x9101), locate));
}

TEST_F(BreakpointsTest, AreLiftedForOneInstruction) {
  put(0x1000, {0x55});
  Breakpoints breakpoints = make(TrapRoute::Intercepted);
  ASSERT_TRUE(replace(breakpoints, at({0x1000})));

  breakpoints.lift(GuestVirt(0x1000));
  EXPECT_EQ(byte(0x1000), 0x55u);
  breakpoints.restore(GuestVirt(0x1000));
  EXPECT_EQ(byte(0x1000), 0xccu);
  breakpoints.restore(GuestVirt(0x3000));  // one that is gone by now
  EXPECT_EQ(byte(0x3000), 0u);
}

}  // namespace
}  // namespace ringside::vmm::kvm
