#include "vmm/attach/monitor/register_dump.h"

#include <gtest/gtest.h>

#include <string>

namespace ringside::vmm {
namespace {

// As QEMU 7.2 prints them, less the registers of floating point.
const std::string kIdle =
    "RAX=0000000000000001 RBX=ffffffff82a1a940 RCX=0000000000000003 RDX=0000000000000004\r\n"
    "RSI=ffffffff82555bf6 RDI=ffffffff82525ad1 RBP=0000000000000005 RSP=ffffffff82a03ea0\r\n"
    "R8 =0000000000000006 R9 =0000000000000007 R10=0000000000000008 R11=0000000000000009\r\n"
    "R12=000000000000000a R13=000000000000000b R14=000000000000000c R15=000000000000000d\r\n"
    "RIP=ffffffff81bc5eab RFL=00000246 [---Z-P-] CPL=0 II=0 A20=1 SMM=0 HLT=1\r\n"
    "ES =0000 0000000000000000 00000000 00000000\r\n"
    "CS =0010 0000000000000000 ffffffff 00af9b00 DPL=0 CS64 [-RA]\r\n"
    "SS =0018 0000000000000000 ffffffff 00cf9300 DPL=0 DS   [-WA]\r\n"
    "DS =0000 0000000000000000 00000000 00000000\r\n"
    "FS =0000 00007f1234567740 00000000 00000000\r\n"
    "GS =0000 ffff88803ec00000 00000000 00000000\r\n"
    "LDT=0000 0000000000000000 00000000 00008200 DPL=0 LDT\r\n"
    "TR =0040 fffffe0000003000 00004087 00008b00 DPL=0 TSS64-busy\r\n"
    "GDT=     fffffe0000001000 0000007f\r\n"
    "IDT=     fffffe0000000000 00000fff\r\n"
    "CR0=80050033 CR2=00007f0b4c5f3000 CR3=0000000002a0a000 CR4=00000ef0\r\n"
    "DR0=0000000000000000 DR1=0000000000000000 DR2=0000000000000000 DR3=0000000000000000 \r\n"
    "DR6=00000000ffff0ff0 DR7=0000000000000400\r\n"
    "EFER=0000000000000d01\r\n"
    "FCW=037f FSW=0000 [ST=0] FTW=00 MXCSR=00001f80\r\n";
const std::string kReset =
    "EAX=00000000 EBX=00000000 ECX=00000000 EDX=00060fb1\r\n"
    "ESI=00000000 EDI=00000000 EBP=00000000 ESP=00000000\r\n"
    "EIP=0000fff0 EFL=00000002 [-------] CPL=0 II=0 A20=1 SMM=0 HLT=0\r\n"
    "ES =0000 00000000 0000ffff 00009300\r\n"
    "CS =f000 ffff0000 0000ffff 00009b00\r\n"
    "SS =0000 00000000 0000ffff 00009300\r\n"
    "DS =0000 00000000 0000ffff 00009300\r\n"
    "FS =0000 00000000 0000ffff 00009300\r\n"
    "GS =0000 00000000 0000ffff 00009300\r\n"
    "CR0=60000010 CR2=00000000 CR3=00000000 CR4=00000000\r\n"
    "EFER=0000000000000000\r\n";

constexpr unsigned kOne[] = {0}, kTwo[] = {0, 1}, kHole[] = {0, 3};

TEST(RegisterDump, IsReadVcpuByVcpu) {
  const auto read = read_register_dump("\r\nCPU#0\r\n" + kIdle + "\r\nCPU#1\r\n" + kReset, kTwo);

  ASSERT_TRUE(read.has_value()) << read.error().message;
  Registers idle;
  idle.rax = 1;
  idle.rbx = 0xffff'ffff'82a1'a940;
  idle.rcx = 3;
  idle.rdx = 4;
  idle.rsi = 0xffff'ffff'8255'5bf6;
  idle.rdi = 0xffff'ffff'8252'5ad1;
  idle.rbp = 5;
  idle.rsp = 0xffff'ffff'82a0'3ea0;
  idle.r8 = 6;
  idle.r9 = 7;
  idle.r10 = 8;
  idle.r11 = 9;
  idle.r12 = 0xa;
  idle.r13 = 0xb;
  idle.r14 = 0xc;
  idle.r15 = 0xd;
  idle.rip = 0xffff'ffff'81bc'5eab;
  idle.rflags = 0x246;
  idle.cs = 0x10;
  idle.ss = 0x18;
  idle.fs_base = 0x7f12'3456'7740;
  idle.gs_base = 0xffff'8880'3ec0'0000;
  idle.cr0 = 0x8005'0033;
  idle.cr3 = 0x2a0'a000;
  idle.cr4 = 0xef0;
  idle.efer = 0xd01;
  EXPECT_EQ((*read)[0], idle);
  Registers reset;
  reset.rdx = 0x60fb1;
  reset.rip = 0xfff0;
  reset.rflags = 2;
  reset.cs = 0xf000;
  reset.cr0 = 0x6000'0010;
  EXPECT_EQ((*read)[1], reset);
}

TEST(RegisterDump, IsOfTheVcpusThatQemuNumbersSo) {
  const std::string text = "CPU#0\n" + kIdle + "CPU#3\n" + kReset;

  const auto read = read_register_dump(text, kHole);

  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ((*read)[1].rip, 0xfff0U);
  EXPECT_FALSE(read_register_dump(text, kTwo).has_value());
}

TEST(RegisterDump, WithAnyLineMissingOrMoreVcpusThanThereAreIsRefused) {
  const std::string whole = "CPU#0\n" + kIdle;
  ASSERT_TRUE(read_register_dump(whole, kOne).has_value());

  for (const char* name : {"RAX=", "R15=", "RIP=", "RFL=", "CS =", "GS =", "CR3=", "EFER="}) {
    std::string without = whole;
    without.replace(without.find(name), 3, "X");
    EXPECT_FALSE(read_register_dump(without, kOne).has_value()) << name;
  }
  EXPECT_FALSE(read_register_dump(whole, kTwo).has_value());
  EXPECT_FALSE(read_register_dump(whole + "CPU#1\n" + kIdle, kOne).has_value());
  EXPECT_FALSE(read_register_dump("CPU#1\n" + kIdle, kOne).has_value());
  EXPECT_FALSE(read_register_dump("", kOne).has_value());
  for (std::size_t cut = 0; cut < whole.find("FCW"); cut += 7) {
    (void)read_register_dump(whole.substr(0, cut), kOne);
  }
}

}  // namespace
}  // namespace ringside::vmm
