#include "vmm/kvm/vcpu/emulate.h"

#include <gtest/gtest.h>

#include <vector>

#include "vmm/kvm/vcpu/fakes_for_tests.h"

namespace ringside::vmm::kvm {
namespace {

class EmulatedInstructions : public ::testing::Test {
 protected:
  EmulatedInstructions() {
    r.rip = 0x1000;
    r.rsp = 0x8000;
    r.rflags = 0x202;
    r.cs = 0x10;
  }
  Emulated execute(const std::vector<std::uint8_t>& code) {
    return emulate(std::as_bytes(std::span(code)), r, stack);
  }
  std::uint64_t word(std::uint64_t at) { return stack.load(GuestVirt(at)).value(); }

  VcpuFakes fakes;
  Registers r;
  VcpuStack stack{fakes.memory, r};
};

TEST_F(EmulatedInstructions, StepsOverEveryFormOfNop) {
  const std::vector<std::vector<std::uint8_t>> nops = {
      {0x90},
      {0x66, 0x90},
      {0x0f, 0x1f, 0x00},
      {0x0f, 0x1f, 0x40, 0x00},
      {0x0f, 0x1f, 0x44, 0x00, 0x00},
      {0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00},
      {0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00},
      {0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00},
      {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00},
      {0xf3, 0x0f, 0x1e, 0xfa},
  };
  for (const auto& nop : nops) {
    r.rip = 0x1000;

    EXPECT_EQ(execute(nop), Emulated::Done) << nop.size() << " bytes";

    EXPECT_EQ(r.rip, 0x1000 + nop.size());
  }
  EXPECT_EQ(r.rflags, 0x202u);
}

TEST_F(EmulatedInstructions, PushesLowAndHighRegisters) {
  r.rbp = 0x1111, r.r12 = 0x2222;

  EXPECT_EQ(execute({0x55}), Emulated::Done);
  EXPECT_EQ(execute({0x41, 0x54}), Emulated::Done);

  EXPECT_EQ(word(0x7ff8), 0x1111u);
  EXPECT_EQ(word(0x7ff0), 0x2222u);
  EXPECT_EQ(r.rsp, 0x7ff0u);
  EXPECT_EQ(r.rip, 0x1003u);
}

TEST_F(EmulatedInstructions, PushingRspPushesItsOldValue) {
  EXPECT_EQ(execute({0x54}), Emulated::Done);

  EXPECT_EQ(word(0x7ff8), 0x8000u);
}

TEST_F(EmulatedInstructions, APushThatCannotBeWrittenChangesNothing) {
  r.rsp = 0x20000;  // no RAM is there

  EXPECT_EQ(execute({0x55}), Emulated::NotSimple);

  EXPECT_EQ(r.rsp, 0x20000u);
  EXPECT_EQ(r.rip, 0x1000u);
}

TEST_F(EmulatedInstructions, MovesBetweenRegistersInBothEncodings) {
  r.rsp = 0x8000, r.r9 = 9;

  EXPECT_EQ(execute({0x48, 0x89, 0xe5}), Emulated::Done);  // mov rbp, rsp
  EXPECT_EQ(execute({0x4c, 0x89, 0xc8}), Emulated::Done);  // mov rax, r9
  EXPECT_EQ(execute({0x4d, 0x8b, 0xd1}), Emulated::Done);  // mov r10, r9

  EXPECT_EQ(r.rbp, 0x8000u);
  EXPECT_EQ(r.rax, 9u);
  EXPECT_EQ(r.r10, 9u);
}

TEST_F(EmulatedInstructions, AMoveFromMemoryIsNotSimple) {
  EXPECT_EQ(execute({0x48, 0x8b, 0x07}), Emulated::NotSimple);
}

TEST_F(EmulatedInstructions, MakesRoomOnTheStackAndSetsTheFlags) {
  EXPECT_EQ(execute({0x48, 0x83, 0xec, 0x10}), Emulated::Done);  // sub rsp, 16
  EXPECT_EQ(r.rsp, 0x7ff0u);
  EXPECT_EQ(r.rflags & 0x8d5u, 0x4u);  // 0xf0: even parity
  EXPECT_EQ(execute({0x48, 0x81, 0xc4, 0x10, 0x80, 0xff, 0xff}), Emulated::Done);
  EXPECT_EQ(r.rsp, 0u);
  EXPECT_EQ(r.rflags & 0x8d5u, 0x45u);  // carry, parity, zero
}

TEST_F(EmulatedInstructions, TellsBorrowAndOverflowApart) {
  r.rsp = 0;
  EXPECT_EQ(execute({0x48, 0x83, 0xec, 0x01}), Emulated::Done);
  EXPECT_EQ(r.rflags & 0x8d5u, 0x95u);  // carry, parity, adjust, sign

  r.rsp = 0x8000'0000'0000'0000;
  EXPECT_EQ(execute({0x48, 0x83, 0xec, 0x01}), Emulated::Done);
  EXPECT_EQ(r.rflags & 0x8d5u, 0x814u);  // overflow, parity, adjust
}

TEST_F(EmulatedInstructions, ReturnsToWhatTheStackSays) {
  ASSERT_TRUE(stack.store(GuestVirt(0x8000), 0xffff'ffff'8100'0000));

  EXPECT_EQ(execute({0xc3}), Emulated::Done);

  EXPECT_EQ(r.rip, 0xffff'ffff'8100'0000);
  EXPECT_EQ(r.rsp, 0x8008u);
}

TEST_F(EmulatedInstructions, PushesTheFlagsAsTheGuestSeesThem) {
  r.rflags = 0x10246;  // RF

  EXPECT_EQ(execute({0x9c}), Emulated::Done);

  EXPECT_EQ(word(0x7ff8), 0x246u);
}

TEST_F(EmulatedInstructions, AHaltIsToldToTheCaller) {
  EXPECT_EQ(execute({0xf4}), Emulated::Halts);

  EXPECT_EQ(r.rip, 0x1001u);
}

TEST_F(EmulatedInstructions, LeavesWhatItDoesNotKnowAndWhatIsCutOff) {
  for (const std::vector<std::uint8_t>& code : std::vector<std::vector<std::uint8_t>>{
           {}, {0xe8, 0, 0, 0, 0}, {0x48, 0x83, 0xec}, {0x0f, 0x1f, 0x44}, {0xf3, 0x0f}, {0x48}}) {
    EXPECT_EQ(execute(code), Emulated::NotSimple);
    EXPECT_EQ(r.rip, 0x1000u);
  }
}

TEST_F(EmulatedInstructions, AGuestThatStepsItselfKeepsItsTrap) {
  r.rflags |= 1 << 8;

  EXPECT_EQ(execute({0x90}), Emulated::NotSimple);
}

}  // namespace
}  // namespace ringside::vmm::kvm
