#include "vmm/kvm/host/kvm_registers.h"

#include <gtest/gtest.h>

namespace ringside::vmm::kvm {
namespace {

TEST(Registers, GoToKvmsFormAndBack) {
  Registers r;
  r.rax = 1, r.rbx = 2, r.rsp = 3, r.r15 = 4, r.rip = 5, r.rflags = 6;

  const Registers back = to_registers(to_kvm_regs(r), {}, 7);

  EXPECT_EQ(back.rax, 1u);
  EXPECT_EQ(back.rbx, 2u);
  EXPECT_EQ(back.rsp, 3u);
  EXPECT_EQ(back.r15, 4u);
  EXPECT_EQ(back.rip, 5u);
  EXPECT_EQ(back.rflags, 6u);
  EXPECT_EQ(back.kernel_gs_base, 7u);
}

}  // namespace
}  // namespace ringside::vmm::kvm
