// Can this host's KVM run a kernel? Where tests/nested/ runs this, it has to.

#include <gtest/gtest.h>

#include <cstdlib>

#include "vmm/kvm/host/kvm_fitness.h"

namespace ringside::vmm {
namespace {

TEST(KvmHere, RunsKernelCodeAtFullSpeed) {
  const KvmFitness here = check_kvm();

  if (!here.fit && std::getenv("RINGSIDE_KVM_REQUIRED") == nullptr) GTEST_SKIP() << here.reason;
  EXPECT_TRUE(here.fit) << here.reason;
}

}  // namespace
}  // namespace ringside::vmm
