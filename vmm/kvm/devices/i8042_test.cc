#include "vmm/kvm/devices/i8042.h"

#include <gtest/gtest.h>

#include "vmm/kvm/devices/testing/fakes.h"

namespace ringside::vmm::kvm {
namespace {

constexpr std::uint64_t kControllerData = 0, kCommand = 4;

class Keyboard : public testing::Test {
 protected:
  std::uint64_t asked(std::uint64_t command) {
    write_to(controller_, kCommand, command);
    EXPECT_EQ(read_from(controller_, kCommand) & 3, 1u) << "an answer, and nothing to wait for";
    return read_from(controller_, kControllerData);
  }
  GuestEnd guest_end_ = running_guest();
  I8042 controller_{guest_end_};
};

TEST_F(Keyboard, ThePulseOfTheResetLineEndsTheGuest) {
  write_to(controller_, kCommand, 0xff);
  EXPECT_EQ(guest_end_.state(), MachineState::Running);
  write_to(controller_, kCommand, 0xfe);
  EXPECT_EQ(guest_end_.state(), MachineState::Rebooted);
}

TEST_F(Keyboard, TheOutputPortsResetBitEndsTheGuest) {
  write_to(controller_, kCommand, 0xd1);
  write_to(controller_, kControllerData, 0xdf);
  EXPECT_EQ(guest_end_.state(), MachineState::Running);
  EXPECT_EQ(asked(0xd0), 0xdfu);
  write_to(controller_, kCommand, 0xd1);
  write_to(controller_, kControllerData, 0xfe);
  EXPECT_EQ(guest_end_.state(), MachineState::Rebooted);
}

TEST_F(Keyboard, NobodyWaitsForIt) {
  for (unsigned command = 0; command < 0xf0; ++command) {
    write_to(controller_, kCommand, command);
    EXPECT_EQ(read_from(controller_, kCommand) & 2, 0u) << command;
    write_to(controller_, kControllerData, 0xff);
    EXPECT_EQ(read_from(controller_, kCommand) & 2, 0u) << command;
  }
}

TEST_F(Keyboard, PassesItsSelfTestAndHasNoDevices) {
  EXPECT_EQ(asked(0xaa), 0x55u);
  EXPECT_EQ(asked(0xab), 1u);
  EXPECT_EQ(asked(0xa9), 1u);
  write_to(controller_, kCommand, 0x60);
  write_to(controller_, kControllerData, 0x74);
  EXPECT_EQ(asked(0x20), 0x74u);
  EXPECT_EQ(read_from(controller_, kCommand) & 1, 0u) << "the answer was taken";

  write_to(controller_, kControllerData, 0xf2);  // to the keyboard: which are you?
  EXPECT_EQ(read_from(controller_, kCommand) & 0x41, 0x41u) << "time-out";
  EXPECT_EQ(read_from(controller_, kControllerData), 0xfeu);
  write_to(controller_, kCommand, 0xd3);
  write_to(controller_, kControllerData, 0x5a);
  EXPECT_EQ(read_from(controller_, kCommand) & 0x21, 0x01u) << "not from the auxiliary device";
}

}  // namespace
}  // namespace ringside::vmm::kvm
