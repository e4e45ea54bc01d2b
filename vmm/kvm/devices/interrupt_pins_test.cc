#include "vmm/kvm/devices/interrupt_pins.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace ringside::vmm::kvm {
namespace {

class InterruptPinsTest : public ::testing::Test {
 protected:
  std::vector<std::pair<std::uint32_t, bool>> told_;
  InterruptPins pins_{[this](std::uint32_t gsi, bool level) { told_.emplace_back(gsi, level); }};
};

TEST_F(InterruptPinsTest, APinIsHighWhileOneOfItsDevicesPulls) {
  InterruptLine& first = pins_.line(4);
  InterruptLine& second = pins_.line(4);

  first.set(true);
  second.set(true);
  first.set(false);
  EXPECT_EQ(told_, (std::vector<std::pair<std::uint32_t, bool>>{{4, true}}));
  second.set(false);

  EXPECT_EQ(told_, (std::vector<std::pair<std::uint32_t, bool>>{{4, true}, {4, false}}));
}

TEST_F(InterruptPinsTest, OnlyChangesAreTold) {
  InterruptLine& line = pins_.line(9);

  line.set(false);
  line.set(true);
  line.set(true);

  EXPECT_EQ(told_, (std::vector<std::pair<std::uint32_t, bool>>{{9, true}}));
}

TEST_F(InterruptPinsTest, PinsDoNotTouchEachOther) {
  InterruptLine& four = pins_.line(4);
  InterruptLine& three = pins_.line(3);

  four.set(true);
  three.set(true);
  four.set(false);

  EXPECT_EQ(told_, (std::vector<std::pair<std::uint32_t, bool>>{{4, true}, {3, true}, {4, false}}));
}

}  // namespace
}  // namespace ringside::vmm::kvm
