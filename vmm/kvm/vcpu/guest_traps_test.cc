#include <gtest/gtest.h>

#include "vmm/kvm/vcpu/fakes_for_tests.h"
#include "vmm/kvm/vcpu/step_over.h"

namespace ringside::vmm::kvm {
namespace {

TEST(GuestTraps, ABreakpointGoesBackWithRipWhereThisHostWantsIt) {
  VcpuFakes intercepted, emulated;

  GuestTraps(intercepted.kvm, TrapRoute::Intercepted, intercepted.guest_end).give_back_breakpoint();
  GuestTraps(emulated.kvm, TrapRoute::Emulated, emulated.guest_end).give_back_breakpoint();

  for (const VcpuFakes* fakes : {&intercepted, &emulated}) {
    EXPECT_EQ(fakes->kvm.pending.exception.injected, 1);
    EXPECT_EQ(fakes->kvm.pending.exception.nr, 3);
    EXPECT_EQ(fakes->kvm.pending.exception.has_error_code, 0);
  }
  EXPECT_EQ(intercepted.kvm.regs.rip, 0u);  // not set: it is at the byte already
  EXPECT_EQ(emulated.kvm.regs.rip, 0x1001u);
}

TEST(GuestTraps, ADebugTrapGoesBackWithItsDr6) {
  VcpuFakes fakes;

  GuestTraps(fakes.kvm, TrapRoute::Intercepted, fakes.guest_end).give_back_debug(0x4000);

  EXPECT_EQ(fakes.kvm.dr6, 0x4000u);
  EXPECT_EQ(fakes.kvm.pending.exception.nr, 1);
}

TEST(GuestTraps, AKvmThatRefusesEndsTheGuest) {
  VcpuFakes fakes;
  fakes.kvm.refuses = true;

  GuestTraps(fakes.kvm, TrapRoute::Emulated, fakes.guest_end).give_back_breakpoint();

  EXPECT_EQ(fakes.guest_end.state(), MachineState::Died);
  EXPECT_EQ(fakes.guest_end.exit_report(), "KVM_SET_REGS failed");
}

}  // namespace
}  // namespace ringside::vmm::kvm
