// The two one-port devices by which a guest ends itself.
#include <gtest/gtest.h>

#include "vmm/kvm/devices/pvpanic.h"
#include "vmm/kvm/devices/reset_control.h"
#include "vmm/kvm/devices/testing/fakes.h"

namespace ringside::vmm::kvm {
namespace {

TEST(ResetControl, Bit2ResetsAndTheKindIsKept) {
  FakeEvents events;
  ResetControl control(events);
  write_to(control, 0, 0x02);
  EXPECT_TRUE(events.ends.empty());
  EXPECT_EQ(read_from(control, 0), 0x02u);
  write_to(control, 0, 0x06);
  EXPECT_EQ(events.ends, std::vector{MachineState::Rebooted});
}

TEST(Pvpanic, TellsItsEventsAndEndsAtAPanicThatNobodyHandles) {
  FakeEvents events;
  Pvpanic device(events);
  EXPECT_EQ(read_from(device, 0), 3u);
  write_to(device, 0, 2);
  write_to(device, 0, 0xfc);
  EXPECT_TRUE(events.ends.empty());
  write_to(device, 0, 1);
  EXPECT_EQ(events.ends, std::vector{MachineState::Panicked});
}

}  // namespace
}  // namespace ringside::vmm::kvm
