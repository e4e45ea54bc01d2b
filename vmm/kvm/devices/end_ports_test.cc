// The two one-port devices by which a guest ends itself.
#include "vmm/kvm/devices/end_ports.h"

#include <gtest/gtest.h>

#include "vmm/kvm/devices/testing/fakes.h"

namespace ringside::vmm::kvm {
namespace {

TEST(ResetControl, Bit2ResetsAndTheKindIsKept) {
  GuestEnd guest_end = running_guest();
  ResetControl control(guest_end);
  write_to(control, 0, 0x02);
  EXPECT_EQ(guest_end.state(), MachineState::Running);
  EXPECT_EQ(read_from(control, 0), 0x02u);
  write_to(control, 0, 0x06);
  EXPECT_EQ(guest_end.state(), MachineState::Rebooted);
}

TEST(Pvpanic, TellsItsEventsAndEndsAtAPanicThatNobodyHandles) {
  GuestEnd guest_end = running_guest();
  Pvpanic device(guest_end);
  EXPECT_EQ(read_from(device, 0), 3u);
  write_to(device, 0, 2);
  write_to(device, 0, 0xfc);
  EXPECT_EQ(guest_end.state(), MachineState::Running);
  write_to(device, 0, 1);
  EXPECT_EQ(guest_end.state(), MachineState::Panicked);
}

}  // namespace
}  // namespace ringside::vmm::kvm
