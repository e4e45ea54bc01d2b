#include <gtest/gtest.h>

#include "vmm/kvm/vcpu/exit_handlers.h"
#include "vmm/kvm/vcpu/fakes_for_tests.h"

namespace ringside::vmm::kvm {
namespace {

constexpr GuestVirt kSite(0x1000);

/// A nop of one byte with another one after it at 0x1000, under a breakpoint.
class BreakpointExitsTest : public ::testing::Test {
 protected:
  explicit BreakpointExitsTest(TrapRoute route = TrapRoute::Intercepted)
      : traps_(fakes_.kvm, route, fakes_.guest_end),
        breakpoints_(fakes_.ram, {route, true, false, false}),
        step_over_({fakes_.kvm, fakes_.memory, fakes_.exit, entry_.entry(), traps_, gate_,
                    breakpoints_, fakes_.guest_end},
                   false),
        exits_(fakes_.exit, breakpoints_, fakes_.subscription, step_over_, traps_) {
    fakes_.put(0x1000, {0x90, 0x90});
    EXPECT_TRUE(set_breakpoints({kSite}));
  }

  Result<void> set_breakpoints(std::vector<GuestVirt> sites) {
    return breakpoints_.replace(sites, [](GuestVirt at) -> std::optional<GuestPhys> {
      if (at.raw() >= 0x1'0000) return std::nullopt;
      return GuestPhys(at.raw());
    });
  }
  void debug_exit(std::uint32_t exception, GuestVirt at, std::uint64_t dr6 = 0) {
    auto& debug = fakes_.kvm.area.debug.arch;
    fakes_.regs().rip = at.raw();
    debug.exception = exception;
    debug.pc = at.raw();
    debug.dr6 = dr6;
    exits_.on_debug();
  }
  bool port_exit(std::uint16_t port, GuestVirt at) {
    kvm_run& area = fakes_.kvm.area;
    area.exit_reason = KVM_EXIT_IO;
    area.s.regs.regs.rip = at.raw();
    area.io.direction = KVM_EXIT_IO_OUT;
    area.io.size = 1;
    area.io.port = port;
    return exits_.on_port();
  }
  bool given_back(unsigned vector) const {
    const auto& exception = fakes_.kvm.pending.exception;
    return exception.injected == 1 && exception.nr == vector;
  }

  VcpuFakes fakes_;
  Gate gate_{2, [](unsigned) {}};
  ScriptedEntry entry_{fakes_.kvm};
  GuestTraps traps_;
  Breakpoints breakpoints_;
  StepOver step_over_;
  BreakpointExits exits_;
};

class PortBreakpointExitsTest : public BreakpointExitsTest {
 protected:
  PortBreakpointExitsTest() : BreakpointExitsTest(TrapRoute::ToGuest) {}
};

TEST_F(BreakpointExitsTest, OursIsToldAndPassed) {
  debug_exit(3, kSite);

  EXPECT_EQ(fakes_.sink.breakpoints, std::vector{kSite});
  EXPECT_EQ(fakes_.sink.rips, std::vector{kSite.raw()});
  EXPECT_EQ(fakes_.kvm.regs.rip, 0x1001u);
}

TEST_F(BreakpointExitsTest, OneThatIsGoneByNowIsNothing) {
  ASSERT_TRUE(set_breakpoints({}));

  debug_exit(3, kSite);

  EXPECT_TRUE(fakes_.sink.breakpoints.empty());
  EXPECT_FALSE(given_back(3));
}

TEST_F(BreakpointExitsTest, TheGuestsOwnGoesBackToIt) {
  fakes_.put(0x2000, {0xcc});

  debug_exit(3, GuestVirt(0x2000));

  EXPECT_TRUE(fakes_.sink.breakpoints.empty());
  EXPECT_TRUE(given_back(3));
}

TEST_F(BreakpointExitsTest, AWatchedAddressIsToldToo) {
  constexpr GuestVirt kNotMapped(0x2'0000);
  ASSERT_TRUE(set_breakpoints({kNotMapped}));

  debug_exit(1, kNotMapped, 1);

  EXPECT_EQ(fakes_.sink.breakpoints, std::vector{kNotMapped});
}

TEST_F(BreakpointExitsTest, ADebugTrapIsTheGuestsUnlessARegisterOfOursMadeIt) {
  debug_exit(1, GuestVirt(0x2000), 1);
  EXPECT_FALSE(given_back(1));

  debug_exit(1, GuestVirt(0x2000), 0x4000);

  EXPECT_TRUE(given_back(1));
  EXPECT_EQ(fakes_.kvm.dr6, 0x4000u);
}

TEST_F(BreakpointExitsTest, AnEmulatorThatStumblesOverOursHasMetIt) {
  fakes_.kvm.area.internal.suberror = KVM_INTERNAL_ERROR_EMULATION;

  EXPECT_TRUE(exits_.on_internal_error());

  EXPECT_EQ(fakes_.sink.breakpoints, std::vector{kSite});
}

TEST_F(BreakpointExitsTest, AnEmulatorThatStumblesOverSomethingElseHasNot) {
  fakes_.put(0x1000, {0x0f});
  fakes_.kvm.area.internal.suberror = KVM_INTERNAL_ERROR_EMULATION;
  EXPECT_FALSE(exits_.on_internal_error());

  fakes_.put(0x1000, {0xcc});
  fakes_.kvm.area.internal.suberror = KVM_INTERNAL_ERROR_DELIVERY_EV;
  EXPECT_FALSE(exits_.on_internal_error());

  EXPECT_TRUE(fakes_.sink.breakpoints.empty());
}

TEST_F(BreakpointExitsTest, PortsAreNoneOfOursWhereBreakpointsAreInt3) {
  EXPECT_FALSE(port_exit(Breakpoints::kTrapPort, kSite));
}

TEST_F(PortBreakpointExitsTest, OursIsToldAndPassed) {
  EXPECT_TRUE(port_exit(Breakpoints::kTrapPort, kSite));

  EXPECT_EQ(fakes_.sink.breakpoints, std::vector{kSite});
  EXPECT_EQ(fakes_.kvm.regs.rip, 0x1002u);
}

TEST_F(PortBreakpointExitsTest, OneThatIsGoneByNowIsTakenBack) {
  ASSERT_TRUE(set_breakpoints({}));

  EXPECT_TRUE(port_exit(Breakpoints::kTrapPort, kSite));

  EXPECT_TRUE(fakes_.sink.breakpoints.empty());
  EXPECT_EQ(fakes_.kvm.regs.rip, kSite.raw());
  EXPECT_EQ(fakes_.kvm.ran_with_rip.size(), 1u);
}

TEST_F(PortBreakpointExitsTest, TheGuestsOwnWriteToThatPortIsAnAccess) {
  fakes_.put(0x2000, {0xe6, Breakpoints::kTrapPort});

  EXPECT_FALSE(port_exit(Breakpoints::kTrapPort, GuestVirt(0x2000)));
  EXPECT_FALSE(port_exit(0x80, GuestVirt(0x3000)));
}

TEST_F(PortBreakpointExitsTest, TheSecondByteAloneIsPassedWithoutAWord) {
  fakes_.regs().rdx = 0x1234;

  EXPECT_TRUE(port_exit(0x1234, GuestVirt(0x1001)));

  EXPECT_TRUE(fakes_.sink.breakpoints.empty());
  EXPECT_EQ(fakes_.kvm.regs.rip, 0x1002u);
}

}  // namespace
}  // namespace ringside::vmm::kvm
