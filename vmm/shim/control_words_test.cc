#include "vmm/shim/control_words.h"

#include <gtest/gtest.h>

#include "vmm/shim/shim_channel_for_tests.h"

namespace ringside::vmm {
namespace {

using namespace shim_fakes;

class ControlledShim : public ShimChannel {};

INSTANTIATE_TEST_SUITE_P(Every, ControlledShim, kEveryReach, reach_name);

TEST_P(ControlledShim, HeartbeatsOfOtherThreadsAreOurs) {
  auto& shared = control();
  shared.heartbeat += 1023;  // they came between our look and our write

  shim_.heartbeat();

  EXPECT_EQ(shim_.state(), ShimState::There);
  shared.heartbeat += 1;
  shim_.heartbeat();
  EXPECT_EQ(shim_.state(), ShimState::Overwritten);
}

TEST_P(ControlledShim, TheGuestIsToldWhetherFullRingsWait) {
  EXPECT_EQ(control().full_waits, 0u);
  shim_.let_full_rings_wait(true);
  EXPECT_EQ(control().full_waits, 1u);
  shim_.let_full_rings_wait(false);
  EXPECT_EQ(control().full_waits, 0u);
}

TEST_P(ControlledShim, NoWordIsWrittenThatTheGuestHasWritten) {
  shim_.set_doorbell(0x5244);
  control().doorbell = 1;
  shim_.set_doorbell(0x5245);
  EXPECT_EQ(control().doorbell, 1u);

  control().armings = 7;
  shim_.note_arming();
  EXPECT_EQ(control().armings, 7u);

  control().active = 2;
  shim_.activate();
  EXPECT_EQ(control().active, 2u);
  shim_.deactivate();
  EXPECT_EQ(control().active, 2u);
}

}  // namespace
}  // namespace ringside::vmm
