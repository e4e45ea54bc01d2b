#include "vmm/kvm/vcpu/step_over.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "vmm/kvm/vcpu/fakes_for_tests.h"

namespace ringside::vmm::kvm {
namespace {

constexpr GuestVirt kSite(0x1000);

/// One vCPU at a breakpoint at 0x1000, which is an int3 or, where KVM does not take those, a port
/// write.
class StepOverTest : public ::testing::Test {
 protected:
  explicit StepOverTest(TrapRoute route = TrapRoute::Intercepted, bool can_block_irqs = true)
      : traps_(fakes_.kvm, route, fakes_.guest_end),
        breakpoints_(fakes_.ram, {route, true, false, can_block_irqs}),
        step_over_({fakes_.kvm, fakes_.memory, fakes_.exit, entry_.entry(), traps_, gate_,
                    breakpoints_, fakes_.guest_end},
                   can_block_irqs) {}

  void set_breakpoints(std::vector<GuestVirt> sites) {
    ASSERT_TRUE(breakpoints_.replace(sites, [](GuestVirt at) { return GuestPhys(at.raw()); }));
  }
  /// A single step of the guest: rip moves on; `seen_` keeps the byte that is at the site
  /// meanwhile.
  std::function<int(kvm_run&)> step_to(std::uint64_t rip) {
    return [this, rip](kvm_run& area) {
      seen_ = fakes_.byte(kSite.raw());
      area.exit_reason = KVM_EXIT_DEBUG;
      area.debug.arch.exception = 1;
      area.s.regs.regs.rip = rip;
      return 0;
    };
  }

  VcpuFakes fakes_;
  Gate gate_{2, [](unsigned) {}};
  ScriptedEntry entry_{fakes_.kvm};
  GuestTraps traps_;
  Breakpoints breakpoints_;
  StepOver step_over_;
  unsigned seen_ = 0;
};

class StepOverPortWriteTest : public StepOverTest {
 protected:
  StepOverPortWriteTest() : StepOverTest(TrapRoute::ToGuest, false) {
    fakes_.kvm.area.exit_reason = KVM_EXIT_IO;
  }
};

TEST_F(StepOverTest, ASimpleInstructionIsExecutedWithoutTheGuest) {
  fakes_.put(0x1000, {0x55});  // push rbp
  set_breakpoints({kSite});
  fakes_.regs().rbp = 0x77;

  step_over_.execute(kSite, kSite);

  EXPECT_EQ(fakes_.kvm.regs.rip, 0x1001u);
  EXPECT_EQ(fakes_.kvm.regs.rsp, 0x7ff8u);
  EXPECT_EQ(fakes_.byte(0x7ff8), 0x77u);
  EXPECT_EQ(fakes_.byte(0x1000), 0xccu);  // ours stayed
  EXPECT_TRUE(fakes_.kvm.debug.empty());
}

TEST_F(StepOverTest, AHaltWaitsForAnInterrupt) {
  fakes_.put(0x1000, {0xf4});
  set_breakpoints({kSite});

  step_over_.execute(kSite, kSite);

  EXPECT_EQ(fakes_.kvm.regs.rip, 0x1001u);
  EXPECT_EQ(fakes_.kvm.mp_state, std::uint32_t{KVM_MP_STATE_HALTED});
}

TEST_F(StepOverTest, AnyOtherIsSteppedWithoutTheBreakpointAndWithoutInterrupts) {
  fakes_.put(0x1000, {0x48, 0xff, 0x07});  // inc qword ptr [rdi]
  set_breakpoints({kSite});
  entry_.script = {step_to(0x1003)};

  step_over_.execute(kSite, kSite);

  EXPECT_EQ(seen_, 0x48u);
  EXPECT_EQ(fakes_.byte(0x1000), 0xccu);
  ASSERT_EQ(fakes_.kvm.debug.size(), 2u);
  EXPECT_EQ(fakes_.kvm.debug[0].control,
            std::uint32_t{KVM_GUESTDBG_ENABLE} | KVM_GUESTDBG_SINGLESTEP | KVM_GUESTDBG_BLOCKIRQ);
  EXPECT_EQ(fakes_.kvm.debug[1].control,
            std::uint32_t{KVM_GUESTDBG_ENABLE} | KVM_GUESTDBG_USE_SW_BP);
  EXPECT_TRUE(gate_.enter(0, [] {}));  // nobody is alone any more
}

TEST_F(StepOverTest, ExitsOnTheWayAreHandled) {
  fakes_.put(0x1000, {0x8b, 0x07});  // mov eax, [rdi]
  set_breakpoints({kSite});
  const auto interrupted = [](kvm_run&) { return EINTR; };
  const auto device = [](kvm_run& area) {
    area.exit_reason = KVM_EXIT_MMIO;
    return 0;
  };
  entry_.script = {interrupted, device, step_to(0x1002)};

  step_over_.execute(kSite, kSite);

  EXPECT_EQ(entry_.handled, std::vector<std::uint32_t>{KVM_EXIT_MMIO});
  EXPECT_TRUE(entry_.script.empty());
}

TEST_F(StepOverTest, AllRoundsOfAStringInstructionAreOne) {
  fakes_.put(0x1000, {0xf3, 0x48, 0xa5});  // rep movsq
  set_breakpoints({kSite});
  entry_.script = {step_to(0x1000), step_to(0x1000), step_to(0x1003), step_to(0x2000)};

  step_over_.execute(kSite, kSite);

  EXPECT_EQ(fakes_.regs().rip, 0x1003u);
  EXPECT_EQ(entry_.script.size(), 1u);
}

TEST_F(StepOverTest, TheGuestsOwnInt3UnderOursIsGivenBack) {
  fakes_.put(0x1000, {0xcc});
  set_breakpoints({kSite});
  entry_.script = {[](kvm_run& area) {
    area.exit_reason = KVM_EXIT_DEBUG;
    area.debug.arch.exception = 3;
    return 0;
  }};

  step_over_.execute(kSite, kSite);

  EXPECT_EQ(fakes_.kvm.pending.exception.nr, 3);
  EXPECT_EQ(fakes_.kvm.pending.exception.injected, 1);
}

TEST_F(StepOverTest, TheNextBreakpointIsLeftToBeMetAgain) {
  fakes_.put(0x1000, {0xeb, 0x0e});  // jmp 0x1010
  fakes_.put(0x1010, {0x90});
  set_breakpoints({kSite, GuestVirt(0x1010)});
  entry_.script = {[](kvm_run& area) {
    area.exit_reason = KVM_EXIT_DEBUG;
    area.debug.arch.exception = 3;
    area.s.regs.regs.rip = 0x1010;
    return 0;
  }};

  step_over_.execute(kSite, kSite);

  EXPECT_TRUE(entry_.handled.empty());
  EXPECT_EQ(fakes_.kvm.pending.exception.injected, 0);
  EXPECT_EQ(fakes_.byte(0x1000), 0xccu);
}

TEST_F(StepOverTest, AKvmThatDoesNotRunEndsTheGuestAndTheByteIsBack) {
  fakes_.put(0x1000, {0x8b, 0x07});
  set_breakpoints({kSite});
  entry_.script = {[](kvm_run&) { return EFAULT; }};

  step_over_.execute(kSite, kSite);

  EXPECT_EQ(fakes_.guest_end.exit_report(), "KVM_RUN failed on vCPU 1: Bad address");
  EXPECT_EQ(fakes_.byte(0x1000), 0xccu);
}

TEST_F(StepOverTest, AMachineThatStopsEndsTheStep) {
  fakes_.put(0x1000, {0x8b, 0x07});
  set_breakpoints({kSite});

  step_over_.execute(kSite, kSite);  // nothing in the script: it stops

  EXPECT_EQ(fakes_.byte(0x1000), 0xccu);
  EXPECT_EQ(fakes_.guest_end.state(), MachineState::Running);
}

TEST_F(StepOverTest, CodeAtAnotherAddressIsExecutedThere) {
  fakes_.put(0x1000, {0x90});
  ASSERT_TRUE(breakpoints_.replace(std::vector{GuestVirt(0xffff'0000)},
                                   [](GuestVirt) { return GuestPhys(0x1000); }));

  step_over_.execute(GuestVirt(0xffff'0000), kSite);

  EXPECT_EQ(fakes_.kvm.regs.rip, 0x1001u);
}

TEST_F(StepOverPortWriteTest, TwoShortInstructionsUnderItAreBothExecuted) {
  fakes_.put(0x1000, {0x55, 0x53});  // push rbp; push rbx
  set_breakpoints({kSite});

  step_over_.execute(kSite, kSite);

  EXPECT_EQ(fakes_.kvm.regs.rip, 0x1002u);
  EXPECT_EQ(fakes_.kvm.regs.rsp, 0x7ff0u);
}

TEST_F(StepOverPortWriteTest, WhoComesToTheSecondByteExecutesOnlyThat) {
  fakes_.put(0x1000, {0x55, 0x53});
  set_breakpoints({kSite});
  fakes_.regs().rip = 0x1001;

  step_over_.execute_second_byte(kSite);

  EXPECT_EQ(fakes_.kvm.regs.rip, 0x1002u);
  EXPECT_EQ(fakes_.kvm.regs.rsp, 0x7ff8u);
}

TEST_F(StepOverPortWriteTest, TheExitIsTakenBackBeforeAStep) {
  fakes_.put(0x1000, {0x8b, 0x07});
  set_breakpoints({kSite});
  entry_.script = {step_to(0x1002)};

  step_over_.execute(kSite, kSite);

  // An entry with another rip, which does not get in; then the one where the `out` was.
  EXPECT_EQ(fakes_.kvm.ran_with_rip, std::vector<std::uint64_t>{0x1001});
  EXPECT_EQ(fakes_.kvm.area.immediate_exit, 1);
  EXPECT_EQ(fakes_.kvm.regs.rip, 0x1000u);
  EXPECT_EQ(fakes_.kvm.debug[0].control,
            std::uint32_t{KVM_GUESTDBG_ENABLE} | KVM_GUESTDBG_SINGLESTEP);
}

}  // namespace
}  // namespace ringside::vmm::kvm
