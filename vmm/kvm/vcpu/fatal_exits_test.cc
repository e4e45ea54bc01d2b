#include <gtest/gtest.h>

#include "vmm/kvm/vcpu/exit_handlers.h"
#include "vmm/kvm/vcpu/fakes_for_tests.h"

namespace ringside::vmm::kvm {
namespace {

class FatalExitsTest : public ::testing::Test {
 protected:
  std::string first_line() const {
    const std::string words = fakes_.guest_end.exit_report();
    return words.substr(0, words.find('\n'));
  }
  kvm_sregs& sregs() { return fakes_.kvm.area.s.regs.sregs; }

  VcpuFakes fakes_;
  FatalExits exits_{fakes_.exit, fakes_.guest_end};
};

TEST_F(FatalExitsTest, ATripleFaultTellsTheRegisters) {
  sregs().idt.base = 0x5000;
  fakes_.regs().rbx = 0x1122'3344;

  exits_.on_shutdown();

  EXPECT_EQ(fakes_.guest_end.state(), MachineState::Died);
  EXPECT_EQ(first_line(), "triple fault on vCPU 1");
  EXPECT_NE(fakes_.guest_end.exit_report().find("rbx 0000000011223344"), std::string::npos);
}

TEST_F(FatalExitsTest, ACpuThatKeepsNoStateTellsTheExitBefore) {
  fakes_.regs().rip = 0xabc;
  sregs().cr3 = 0x7000;
  exits_.note_place();
  sregs().idt.limit = 0xffff;
  fakes_.regs().rip = 0xfff0;
  sregs().cs.selector = 0xf000;

  exits_.on_shutdown();

  EXPECT_EQ(first_line(),
            "triple fault on vCPU 1; this CPU keeps no state of it; at the exit before it: rip "
            "0000000000000abc  cr3 0000000000007000");
}

TEST_F(FatalExitsTest, AnEmptyInterruptTableIsAReboot) {
  sregs().idt.base = 0;
  sregs().idt.limit = 0;

  exits_.on_shutdown();

  EXPECT_EQ(fakes_.guest_end.state(), MachineState::Rebooted);
  EXPECT_EQ(fakes_.guest_end.exit_report(), "");
}

TEST_F(FatalExitsTest, ASystemEventTellsHowItEnded) {
  fakes_.kvm.area.system_event.type = KVM_SYSTEM_EVENT_CRASH;

  exits_.on_system_event();

  EXPECT_EQ(fakes_.guest_end.state(), MachineState::Panicked);
  EXPECT_EQ(fakes_.guest_end.exit_report(), "a scene");
}

TEST_F(FatalExitsTest, AnInternalErrorShowsTheCode) {
  fakes_.put(0x1000, {0x0f, 0x0b, 0x90});
  fakes_.kvm.area.internal.suberror = 1;

  exits_.on_internal_error();

  EXPECT_EQ(first_line(),
            "this host's KVM cannot go on with vCPU 1 (error 1); code at rip: 0f 0b 90 00 00 00 00 "
            "00 00 00 00 00 00 00 00");
}

TEST_F(FatalExitsTest, AnUnknownExitIsToldByItsNumber) {
  fakes_.kvm.area.exit_reason = 99;

  exits_.on_unknown();

  EXPECT_EQ(first_line(), "KVM left the guest for a reason that we do not know (99), vCPU 1");
}

TEST_F(FatalExitsTest, AFailedEntryTellsTheHardwaresReason) {
  fakes_.kvm.area.exit_reason = KVM_EXIT_FAIL_ENTRY;
  fakes_.kvm.area.fail_entry.hardware_entry_failure_reason = 0x80000021;

  exits_.on_unknown();

  EXPECT_EQ(first_line(), "KVM could not enter the guest (hardware's reason 0x80000021), vCPU 1");
}

TEST_F(FatalExitsTest, AFailureOfKvmRunIsToldByName) {
  exits_.on_run_error(EFAULT);

  EXPECT_EQ(fakes_.guest_end.exit_report(), "KVM_RUN failed on vCPU 1: Bad address");
}

}  // namespace
}  // namespace ringside::vmm::kvm
