#include "vmm/kvm/devices/acpi_pm.h"

#include <gtest/gtest.h>

#include "vmm/kvm/devices/testing/fakes.h"

namespace ringside::vmm::kvm {
namespace {

constexpr std::uint64_t kPmStatus = 0, kEnable = 2, kControl = 4, kTimer = 8;

class Pm : public testing::Test {
 protected:
  FakeLine sci_;
  GuestEnd guest_end_ = running_guest();
  std::uint64_t now_ = 0;
  AcpiPm pm_{sci_, guest_end_, [this] { return now_; }};
};

TEST_F(Pm, SleepEnablePowersOff) {
  write_to(pm_, kControl, 5 << 10, 2);
  EXPECT_EQ(guest_end_.state(), MachineState::Running) << "a type alone is not a sleep";
  EXPECT_EQ(read_from(pm_, kControl, 2), (5u << 10) | 1);
  write_to(pm_, kControl, (5 << 10) | (1 << 13), 2);
  EXPECT_EQ(guest_end_.state(), MachineState::PoweredOff);
  EXPECT_EQ(read_from(pm_, kControl, 2) & (1 << 13), 0u) << "reads as 0";
}

TEST_F(Pm, SleepEnableByBytesPowersOffAsWell) {
  write_to(pm_, kControl + 1, 0x34);
  EXPECT_EQ(guest_end_.state(), MachineState::PoweredOff);
}

TEST_F(Pm, ThePowerButtonInterruptsWhenEnabledUntilItIsCleared) {
  pm_.press_power_button();
  EXPECT_FALSE(sci_.level());
  write_to(pm_, kEnable, 0x100, 2);
  EXPECT_TRUE(sci_.level());
  EXPECT_EQ(read_from(pm_, kPmStatus, 2), 0x100u);
  write_to(pm_, kPmStatus, 0xff, 1);
  EXPECT_TRUE(sci_.level()) << "other bits";
  write_to(pm_, kPmStatus, 0x100, 2);
  EXPECT_FALSE(sci_.level());
  EXPECT_EQ(read_from(pm_, kPmStatus, 4), 0x0100'0000u) << "status and enable in one access";
}

TEST_F(Pm, TheTimerRunsAtItsFrequencyAndWraps) {
  EXPECT_EQ(read_from(pm_, kTimer, 4), 0u);
  now_ = 1'000'000'000;
  EXPECT_EQ(read_from(pm_, kTimer, 4), 3'579'545u);
  now_ = 1'500'000'000;
  EXPECT_EQ(read_from(pm_, kTimer, 4), 5'369'317u);
  now_ = std::uint64_t{100} * 365 * 86'400 * 1'000'000'000;
  EXPECT_EQ(read_from(pm_, kTimer, 4), std::uint32_t(std::uint64_t{3'153'600'000} * 3'579'545));
}

TEST_F(Pm, WhatIsNotARegisterReadsAsAllOnes) {
  EXPECT_EQ(read_from(pm_, 6, 2), 0xffffu);
  EXPECT_EQ(read_from(pm_, 8, 8) >> 32, 0xffff'ffffu);
  write_to(pm_, 0, UINT64_MAX, 8);
  EXPECT_EQ(guest_end_.state(), MachineState::PoweredOff);
}

}  // namespace
}  // namespace ringside::vmm::kvm
