#include "vmm/kvm/vcpu/vcpu_state.h"

#include <gtest/gtest.h>

#include "vmm/kvm/boot/layout.h"

namespace ringside::vmm::kvm {
namespace {

TEST(StartState, OfLongModePagesAndRunsFlat64BitCode) {
  kvm_sregs reset{};
  reset.apic_base = 0xfee0'0900;
  BootState boot;
  boot.cr3 = kBootTables;
  boot.entry = 0x100'0000;
  boot.rsi = kZeroPage;

  const kvm_sregs sregs = start_sregs(reset, boot);
  const kvm_regs regs = start_regs(boot);

  EXPECT_EQ(sregs.cr0 & 0x8000'0001, 0x8000'0001u);
  EXPECT_EQ(sregs.cr3, kBootTables);
  EXPECT_EQ(sregs.efer, 0x500u);
  EXPECT_EQ(sregs.cs.selector, 0x10);
  EXPECT_EQ(sregs.cs.l, 1);
  EXPECT_EQ(sregs.cs.db, 0);
  EXPECT_EQ(sregs.ss.selector, 0x18);
  EXPECT_EQ(sregs.apic_base, 0xfee0'0900u) << "what no protocol mentions stays";
  EXPECT_EQ(regs.rip, 0x100'0000u);
  EXPECT_EQ(regs.rsi, kZeroPage);
  EXPECT_EQ(regs.rflags, 2u);
}

TEST(StartState, OfProtectedModeDoesNotPage) {
  BootState boot;
  boot.mode = BootState::Mode::Protected32;
  boot.rbx = kStartInfo;

  const kvm_sregs sregs = start_sregs({}, boot);

  EXPECT_EQ(sregs.cr0 & 0x8000'0001, 1u);
  EXPECT_EQ(sregs.cr4, 0u);
  EXPECT_EQ(sregs.efer, 0u);
  EXPECT_EQ(sregs.cs.db, 1);
  EXPECT_EQ(sregs.cs.l, 0);
  EXPECT_EQ(start_regs(boot).rbx, kStartInfo);
}

TEST(StartState, HasAnIdtWithoutGatesThatIsNotTheEmptyOneOfAReboot) {
  const kvm_sregs sregs = start_sregs({}, BootState{});

  EXPECT_EQ(sregs.idt.limit, 0);
  EXPECT_NE(sregs.idt.base, 0u);
}

TEST(Describe, ShowsWhereTheVcpuStood) {
  kvm_regs regs{};
  regs.rip = 0xffff'ffff'8100'0000;
  kvm_sregs sregs{};
  sregs.cr3 = 0x1000;

  const std::string text = describe(regs, sregs);

  EXPECT_NE(text.find("rip ffffffff81000000"), std::string::npos);
  EXPECT_NE(text.find("cr3 0000000000001000"), std::string::npos);
}

}  // namespace
}  // namespace ringside::vmm::kvm
