#include "vmm/kvm/host/kvm_fitness.h"

#include <gtest/gtest.h>

namespace ringside::vmm {
namespace {

TEST(KvmFitness, SaysWhyADeviceIsNoUse) {
  const KvmFitness missing = check_kvm("/dev/no-such-device"), other = check_kvm("/dev/null");

  EXPECT_FALSE(missing.fit);
  EXPECT_EQ(missing.reason, "this host has no /dev/no-such-device");
  EXPECT_FALSE(other.fit);
  EXPECT_EQ(other.reason, "/dev/null does not speak the KVM API");
}

TEST(KvmFitness, AlwaysReachesAVerdictOnThisHost) {
  const KvmFitness here = check_kvm();

  EXPECT_EQ(here.fit, here.reason.empty()) << here.reason;
}

}  // namespace
}  // namespace ringside::vmm
