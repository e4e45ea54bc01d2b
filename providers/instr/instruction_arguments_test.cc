// Arguments of probes on instructions.
#include "providers/instr/instruction_arguments.h"

#include <gtest/gtest.h>

#include "disasm/code_for_tests.h"
#include "providers/testing/fake_guest.h"
#include "vmm/page_walk.h"

namespace ringside::providers {
namespace {

using disasm::code;

class OnAnInstruction : public testing::Test {
 protected:
  OnAnInstruction() {
    registers_.rip = kHere.raw();
    registers_.rsp = kKernelBase + kStack;
    registers_.rbx = kKernelBase + kRegs;
    registers_.rdi = 0x1000;
    registers_.rcx = 5;
    memory_.put64(kStack, 0xffff'ffff'8111'1111);
    memory_.put64(kRegs + 8, 0xffff'ffff'8122'2222);
  }
  std::uint64_t argument(const std::vector<std::byte>& bytes, unsigned n) {
    return ask(bytes, n).value_or(~0ULL);
  }
  Result<std::uint64_t, Fault> ask(const std::vector<std::byte>& bytes, unsigned n) {
    const auto operation = disasm::decode_operation(bytes, kHere);
    EXPECT_TRUE(operation);
    const InstructionPlan plan = plans_.plan_for(*operation);
    return plan.plan->value(n, {registers_, kernel_, plan.site});
  }

  static constexpr GuestVirt kHere{0xffff'ffff'8100'0000};
  FakeMemory memory_;
  FakeKernel fake_;
  vmm::PageTableReader kernel_{memory_.memory(), fake_.table()};
  Registers registers_;
  PlanPool plans_;
};

TEST_F(OnAnInstruction, TheFirstIsItsAddress) {
  EXPECT_EQ(argument(code({0xfa}), 0), kHere.raw());
  EXPECT_EQ(argument(code({0xfa}), 1), 0u);
  const InstructionPlan beside = plans_.plan_for_place(GuestVirt(kHere.raw() - 5));
  EXPECT_EQ(beside.plan->value(0, {registers_, kernel_, beside.site}), kHere.raw() - 5);
}

TEST_F(OnAnInstruction, LoadsAndStoresHaveAnAddressAndASize) {
  const auto load = code({0x48, 0x8b, 0x44, 0x8f, 0xf0});  // mov rax, [rdi + rcx * 4 - 0x10]
  EXPECT_EQ(argument(load, 1), 0x1000u + 5 * 4 - 0x10);
  EXPECT_EQ(argument(load, 2), 8u);
  const auto far = code({0x48, 0xa1, 1, 2, 3, 4, 5, 6, 7, 0x88});  // mov rax, [64 bits]
  EXPECT_EQ(argument(far, 1), 0x8807'0605'0403'0201u);
  const auto relative = code({0x88, 0x05, 0xf0, 0xff, 0xff, 0xff});  // mov [rip - 0x10], al
  EXPECT_EQ(argument(relative, 1), kHere.raw() + 6 - 0x10);
  EXPECT_EQ(argument(relative, 2), 1u);
}

TEST_F(OnAnInstruction, StringsAlsoHaveACount) {
  EXPECT_EQ(argument(code({0xf3, 0xaa}), 1), 0x1000u);  // rep stosb
  EXPECT_EQ(argument(code({0xf3, 0xaa}), 3), 5u);
  EXPECT_EQ(argument(code({0xaa}), 3), 1u);
}

TEST_F(OnAnInstruction, BranchesSayWhereTo) {
  EXPECT_EQ(argument(code({0xe8, 0xfb, 0xff, 0, 0}), 1), kHere.raw() + 0x10000);
  EXPECT_EQ(argument(code({0xeb, 0x10}), 1), kHere.raw() + 0x12);
  EXPECT_EQ(argument(code({0xff, 0xd3}), 1), registers_.rbx);  // call rbx
  EXPECT_EQ(argument(code({0xff, 0x53, 0x08}), 1), 0xffff'ffff'8122'2222);
  EXPECT_EQ(argument(code({0xc3}), 1), 0xffff'ffff'8111'1111);
}

TEST_F(OnAnInstruction, ATargetThatCannotBeReadIsAFault) {
  registers_.rbx = 0x10;

  EXPECT_EQ(ask(code({0xff, 0x53, 0x08}), 1).error().kind, FaultKind::BadAddress);
}

TEST_F(OnAnInstruction, JumpsSayWhetherTheyAreTaken) {
  const auto jz = code({0x74, 0x10}), jnz = code({0x75, 0x10}), jrcxz = code({0xe3, 0x10});
  registers_.rflags = arch::kZeroFlag;
  EXPECT_EQ(argument(jz, 1), 1u);
  EXPECT_EQ(argument(jnz, 1), 0u);
  EXPECT_EQ(argument(jnz, 2), kHere.raw() + 0x12);
  EXPECT_EQ(argument(jrcxz, 1), 0u);
  registers_.rcx = 0;
  EXPECT_EQ(argument(jrcxz, 1), 1u);
  registers_.rcx = 1;
  EXPECT_EQ(argument(code({0xe2, 0x10}), 1), 0u) << "loop counts first";
}

TEST_F(OnAnInstruction, PlansAreSharedByShape) {
  argument(code({0x48, 0x8b, 0x47, 0x08}), 1);
  argument(code({0x48, 0x8b, 0x47, 0x10}), 1);  // another displacement
  argument(code({0xe8, 1, 0, 0, 0}), 1);
  argument(code({0xe8, 2, 0, 0, 0}), 1);
  EXPECT_EQ(plans_.size(), 2u);

  argument(code({0x48, 0x8b, 0x46, 0x10}), 1);  // another register
  argument(code({0x8b, 0x47, 0x10}), 1);        // another size
  EXPECT_EQ(plans_.size(), 4u);
}

}  // namespace
}  // namespace ringside::providers
