#include <gtest/gtest.h>

#include "vmm/kvm/vcpu/vcpu.h"

namespace ringside::vmm::kvm {
namespace {

TEST(ExitTimes, TellHowLongTheVcpuWasInTheGuestAndBeforeThatOutOfIt) {
  ExitTimes times;
  EXPECT_FALSE(times.known());

  times.enter(100);
  times.leave(130);
  EXPECT_TRUE(times.known());
  EXPECT_EQ(times.inside(), 30u);
  EXPECT_EQ(times.outside(), 0u);
  times.enter(137);
  times.leave(141);

  EXPECT_EQ(times.inside(), 4u);
  EXPECT_EQ(times.outside(), 7u);
}

TEST(ExitTimes, AnEntryThatWasNotTimedIsUnknown) {
  ExitTimes times;

  times.leave(130);  // events were asked for while the vCPU was in the guest

  EXPECT_FALSE(times.known());
}

}  // namespace
}  // namespace ringside::vmm::kvm
