#include "disasm/decoder.h"

#include <gtest/gtest.h>

#include <initializer_list>

#include "disasm/code_for_tests.h"
#include "disasm/cross_check.h"

namespace ringside::disasm {
namespace {

constexpr GuestVirt kAt{0xffffffff81000000};

Instruction decoded(std::initializer_list<int> values) {
  const auto in = decode(code(values), kAt);
  EXPECT_TRUE(in.has_value());
  return in.value_or(Instruction{});
}

TEST(Decode, KnowsWhereDirectBranchesGo) {
  const Instruction call = decoded({0xe8, 0x10, 0, 0, 0});
  EXPECT_EQ(call.flow, Flow::Call);
  EXPECT_EQ(call.target.raw(), kAt.raw() + 0x15);

  const Instruction jump = decoded({0xeb, 0xfe});
  EXPECT_EQ(jump.flow, Flow::Jump);
  EXPECT_EQ(jump.target, kAt);

  const Instruction padded_call = decoded({0x2e, 0x2e, 0xe8, 0, 0, 0, 0});
  EXPECT_EQ(padded_call.flow, Flow::Call);
  EXPECT_EQ(padded_call.target.raw(), kAt.raw() + 7);
}

TEST(Decode, GivesTheConditionOfBothJccForms) {
  EXPECT_EQ(decoded({0x75, 0x02}).condition, 5);
  EXPECT_EQ(decoded({0x0f, 0x8f, 2, 0, 0, 0}).condition, 0xf);

  const Instruction jrcxz = decoded({0xe3, 0x02});
  EXPECT_EQ(jrcxz.flow, Flow::ConditionalJump);
  EXPECT_EQ(jrcxz.condition, arch::kNoCondition);
  EXPECT_EQ(jrcxz.target.raw(), kAt.raw() + 4);
}

TEST(Decode, TellsTableJumpsFromOtherIndirectJumps) {
  EXPECT_EQ(decoded({0xff, 0xe0}).flow, Flow::IndirectJump);                    // jmp *%rax
  EXPECT_EQ(decoded({0xff, 0x25, 0, 0, 0, 0}).flow, Flow::IndirectJump);        // jmp *0(%rip)
  EXPECT_EQ(decoded({0xff, 0x24, 0xc5, 0, 0, 0, 0x81}).flow, Flow::TableJump);  // (,%rax,8)
  EXPECT_EQ(decoded({0xff, 0x64, 0xc3, 0x08}).flow, Flow::IndirectJump);        // 8(%rbx,%rax,8)
  EXPECT_EQ(decoded({0x3e, 0xff, 0x24, 0xc5, 0, 0, 0, 0x81}).flow, Flow::TableJump);  // notrack
}

TEST(Decode, KnowsTheEndsOfFunctions) {
  EXPECT_EQ(decoded({0xc3}).flow, Flow::Return);
  EXPECT_EQ(decoded({0xc2, 0x08, 0x00}).flow, Flow::Return);
  EXPECT_EQ(decoded({0xf3, 0xc3}).flow, Flow::Return);
  EXPECT_EQ(decoded({0xcc}).flow, Flow::Stop);
  EXPECT_EQ(decoded({0x0f, 0x0b}).flow, Flow::Stop);
  EXPECT_EQ(decoded({0xcb}).flow, Flow::Other);              // far return
  EXPECT_EQ(decoded({0x48, 0xcf}).flow, Flow::Other);        // iretq
  EXPECT_EQ(decoded({0x0f, 0x05}).flow, Flow::Other);        // syscall
  EXPECT_EQ(decoded({0x48, 0x0f, 0x07}).flow, Flow::Other);  // sysret
  EXPECT_EQ(decoded({0xcd, 0x80}).flow, Flow::Other);
  EXPECT_EQ(decoded({0xc7, 0xf8, 0, 0, 0, 0}).flow, Flow::Other);  // xbegin
}

TEST(Decoder, LoadsOfTheInterruptTableAndOfGsAreKnown) {
  EXPECT_TRUE(decoded({0x0f, 0x01, 0x1f}).loads_idt);              // lidt (%rdi)
  EXPECT_TRUE(decoded({0x0f, 0x01, 0x5c, 0x24, 0x06}).loads_idt);  // lidt 6(%rsp)
  EXPECT_FALSE(decoded({0x0f, 0x01, 0x17}).loads_idt);             // lgdt (%rdi)
  EXPECT_FALSE(decoded({0x0f, 0x01, 0xf8}).loads_idt);             // swapgs
  EXPECT_TRUE(decoded({0x0f, 0x01, 0xf8}).loads_gs);               // swapgs
  EXPECT_TRUE(decoded({0x8e, 0xe8}).loads_gs);                     // mov %eax,%gs
  EXPECT_TRUE(decoded({0x0f, 0xa9}).loads_gs);                     // pop %gs
  EXPECT_TRUE(decoded({0x0f, 0xb5, 0x07}).loads_gs);               // lgs (%rdi),%eax
  EXPECT_TRUE(decoded({0xf3, 0x48, 0x0f, 0xae, 0xdf}).loads_gs);   // wrgsbase %rdi
  EXPECT_FALSE(decoded({0xf3, 0x48, 0x0f, 0xae, 0xd7}).loads_gs);  // wrfsbase %rdi
  EXPECT_FALSE(decoded({0x8e, 0xe0}).loads_gs);                    // mov %eax,%fs
  EXPECT_FALSE(decoded({0x8c, 0xe8}).loads_gs);                    // mov %gs,%eax
  EXPECT_FALSE(decoded({0x65, 0x48, 0x89, 0x07}).loads_gs);        // mov %rax,%gs:(%rdi)
}

TEST(Decode, SeesRipRelativeOperandsInEveryEncoding) {
  EXPECT_TRUE(decoded({0x48, 0x8b, 0x05, 1, 0, 0, 0}).rip_relative);
  EXPECT_TRUE(decoded({0xc5, 0xf8, 0x28, 0x05, 1, 0, 0, 0}).rip_relative);  // vmovaps
  EXPECT_FALSE(decoded({0x48, 0x8b, 0x03}).rip_relative);
  EXPECT_FALSE(decoded({0x8b, 0x04, 0x25, 1, 0, 0, 0}).rip_relative);  // absolute
}

TEST(Decode, IsEmptyForWhatIsNoInstruction) {
  EXPECT_FALSE(decode(code({0x06}), kAt));
  EXPECT_FALSE(decode(code({0x48, 0x8b}), kAt)) << "cut off";
  EXPECT_FALSE(decode({}, kAt));
}

TEST(ConditionHolds, FollowsTheManualForAllSixteen) {
  constexpr std::uint64_t kCarry = 1, kParity = 4, kZero = 0x40, kSign = 0x80, kOverflow = 0x800;
  const std::uint64_t even_true[8] = {kOverflow, kCarry,  kZero, kZero,
                                      kSign,     kParity, kSign, kZero};

  for (std::uint8_t pair = 0; pair < 8; ++pair) {
    const auto even = static_cast<std::uint8_t>(2 * pair);
    const auto odd = static_cast<std::uint8_t>(even + 1);
    EXPECT_TRUE(arch::condition_holds(even, even_true[pair])) << int(even);
    EXPECT_FALSE(arch::condition_holds(odd, even_true[pair])) << int(odd);
    EXPECT_FALSE(arch::condition_holds(even, 0)) << int(even);
    EXPECT_TRUE(arch::condition_holds(odd, 0)) << int(odd);
  }
  EXPECT_TRUE(arch::condition_holds(6, kCarry)) << "be";
  EXPECT_FALSE(arch::condition_holds(12, kSign | kOverflow)) << "l";
  EXPECT_TRUE(arch::condition_holds(14, kOverflow)) << "le";
}

TEST(ToText, IsIntelSyntax) {
  EXPECT_EQ(to_text(code({0x48, 0x89, 0xe5}), kAt), "mov rbp, rsp");
  EXPECT_EQ(to_text(code({0xc3}), kAt), "ret");
  EXPECT_EQ(to_text(code({0xe8, 0, 0, 0, 0}), kAt), "call 0xffffffff81000005");
  EXPECT_EQ(to_text(code({0x06}), kAt), "");
}

TEST(Decoder, DecodesTextAnewThatHasChanged) {
  const auto length_of = [](std::initializer_list<int> bytes) {
    const auto in = decode(code(bytes), GuestVirt(0x1000));
    return in ? unsigned{in->length} : 0;
  };

  EXPECT_EQ(length_of({0x0f, 0x1f, 0x44, 0, 0, 0xc3}), 5u);
  EXPECT_EQ(length_of({0x0f, 0x1f, 0x44, 0}), 0u) << "cut short";
  EXPECT_EQ(length_of({0xe8, 1, 2, 3, 4}), 5u);
  EXPECT_EQ(decode(code({0xe8, 1, 2, 3, 4}), GuestVirt(0x1000))->target, GuestVirt(0x4031206));
  EXPECT_EQ(decode(code({0xe8, 2, 2, 3, 4}), GuestVirt(0x1000))->target, GuestVirt(0x4031207));
  EXPECT_EQ(decode(code({0xe8, 1, 2, 3, 4}), GuestVirt(0x2000))->target, GuestVirt(0x4032206));
}

}  // namespace
}  // namespace ringside::disasm
