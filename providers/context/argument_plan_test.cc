#include "providers/context/argument_plan.h"

#include <gtest/gtest.h>

#include <vector>

#include "dif/testing/fake_guest.h"

namespace ringside::providers {
namespace {

constexpr std::uint64_t kArgumentStack = 0xffff'c900'0000'1000;

class Plan : public ::testing::Test {
 protected:
  std::uint64_t value(const ArgumentPlan& plan, unsigned n) {
    return plan.value(n, moment()).value_or(0xdead);
  }
  ArgumentMoment moment() const { return {registers_, memory_, site_, facts_}; }

  Registers registers_;
  dif::testing::FakeMemory memory_;
  std::uint64_t site_ = 0;
  std::vector<std::uint64_t> facts_;
};

TEST_F(Plan, TheCallingConventionGivesSixRegistersThenTheStackAboveTheReturnAddress) {
  registers_.rdi = 10, registers_.rsi = 11, registers_.rdx = 12;
  registers_.rcx = 13, registers_.r8 = 14, registers_.r9 = 15;
  registers_.rsp = kArgumentStack;
  for (std::uint64_t n = 0; n < 5; ++n)
    memory_.put_value<std::uint64_t>(kArgumentStack + 8 * n, 15 + n);

  for (unsigned n = 0; n < 10; ++n) EXPECT_EQ(value(kFunctionEntryArguments, n), 10 + n) << n;
}

TEST_F(Plan, AnArgumentThatNobodyPlannedIsZero) {
  registers_.rax = 7;
  for (unsigned n = 2; n < 10; ++n) EXPECT_EQ(value(kFunctionReturnArguments, n), 0u) << n;
  EXPECT_EQ(value(kNoArguments, 0), 0u);
  EXPECT_EQ(value(kFunctionEntryArguments, 10), 0u) << "beyond arg9";
  EXPECT_EQ(memory_.reads, 0u);
}

TEST_F(Plan, AValueOfFewerBytesIsExtendedByItsSign) {
  constexpr ArgumentSource kReturn = ArgumentSource::in(&Registers::rax);
  constexpr ArgumentPlan kPlan = arguments_from(
      {kReturn.narrowed(4, true), kReturn.narrowed(4, false), kReturn.narrowed(2, true),
       kReturn.narrowed(1, true), kReturn.narrowed(1, false), kReturn.narrowed(8, true), kReturn});
  registers_.rax = 0xdead'beef'ffff'fffe;

  EXPECT_EQ(value(kPlan, 0), std::uint64_t(-2));
  EXPECT_EQ(value(kPlan, 1), 0xffff'fffeU);
  EXPECT_EQ(value(kPlan, 2), std::uint64_t(-2));
  EXPECT_EQ(value(kPlan, 3), std::uint64_t(-2));
  EXPECT_EQ(value(kPlan, 4), 0xfeU);
  EXPECT_EQ(value(kPlan, 5), registers_.rax);
  EXPECT_EQ(value(kPlan, 6), registers_.rax);
  registers_.rax = 0xdead'beef'0000'0100;
  EXPECT_EQ(value(kPlan, 0), 0x100U);
  EXPECT_EQ(value(kPlan, 4), 0U) << "a bool in al, beside what is left of something else";
}

TEST_F(Plan, TheSiteIsTheBindings) {
  site_ = 0x1f;
  registers_.rax = 7;

  EXPECT_EQ(value(kFunctionExitArguments, 0), 0x1fu);
  const auto untold = kFunctionExitArguments.value(1, moment());
  ASSERT_FALSE(untold) << "no value where the way out is a jump";
  EXPECT_EQ(untold.error().kind, FaultKind::IllegalOperation);
  EXPECT_EQ(value(kFunctionReturnArguments, 1), 7u);
}

TEST_F(Plan, TheHostsFactsAreWordByWordAndZeroBeyondTheLast) {
  constexpr ArgumentPlan kThree = facts_as_arguments(3);
  facts_ = {10, 11};

  EXPECT_EQ(value(kThree, 0), 10u);
  EXPECT_EQ(value(kThree, 1), 11u);
  EXPECT_EQ(value(kThree, 2), 0u) << "the host knows two";
  EXPECT_FALSE(kThree.needs_vcpu(1));
  EXPECT_FALSE(kThree.needs_vcpu(9));
  EXPECT_TRUE(kFunctionReturnArguments.needs_vcpu(1));
}

TEST_F(Plan, TheProgramCounterIsTheKernelsOrTheUsers) {
  constexpr ArgumentPlan kPlan =
      arguments_from({ArgumentSource::kernel_pc(), ArgumentSource::user_pc()});
  registers_.rip = 0x4711;
  EXPECT_EQ(value(kPlan, 0), 0x4711u);
  EXPECT_EQ(value(kPlan, 1), 0u);

  registers_.cs = 0x33;
  EXPECT_EQ(value(kPlan, 0), 0u);
  EXPECT_EQ(value(kPlan, 1), 0x4711u);
}

TEST_F(Plan, AStackWordThatIsNotMappedIsAFaultThatNamesIt) {
  registers_.rsp = kArgumentStack;

  const auto seventh = kFunctionEntryArguments.value(6, moment());

  ASSERT_FALSE(seventh);
  EXPECT_EQ(seventh.error().kind, FaultKind::BadAddress);
  EXPECT_EQ(seventh.error().address, kArgumentStack + 8);
}

TEST_F(Plan, AWordThatIsMappedInPartIsAFaultAtItsFirstMissingByte) {
  const ArgumentSource source = ArgumentSource::word(&Registers::rdi, 0x70);
  registers_.rdi = kArgumentStack;
  memory_.put_value<std::uint64_t>(kArgumentStack + 0x70, 1);
  memory_.unmap(kArgumentStack + 0x75);

  const auto word = source.value(moment());

  ASSERT_FALSE(word);
  EXPECT_EQ(word.error().address, kArgumentStack + 0x75);
}

TEST_F(Plan, ARegisterAtTheEndOfTheAddressesDoesNotWrap) {
  registers_.rsp = UINT64_MAX - 4;
  memory_.put_value<std::uint64_t>(3, 0x4711);  // where the sum would wrap to

  const auto seventh = kFunctionEntryArguments.value(6, moment());

  ASSERT_FALSE(seventh);
  EXPECT_EQ(seventh.error().kind, FaultKind::BadAddress);
  EXPECT_EQ(seventh.error().address, UINT64_MAX - 4);
}

/// Does as a provider of static tracepoints will: works out from the registers what the guest
/// would.
class Difference final : public ComputedArguments {
 public:
  Result<std::uint64_t, Fault> argument(unsigned n, const ArgumentMoment& at) const override {
    const auto low = TRY(load<std::uint32_t>(at.kernel, GuestVirt(at.registers.r13)));
    return low - n;
  }
  RecordedArgument recorded(unsigned) const override { return {}; }
};

TEST_F(Plan, AComputationSeesTheMomentAndItsFaultIsTheArguments) {
  const Difference computation;
  ArgumentPlan plan;
  plan.arguments[0] = ArgumentSource::computed(computation, 2);
  registers_.r13 = kArgumentStack;

  const auto fault = plan.value(0, moment());
  memory_.put_value<std::uint32_t>(kArgumentStack, 44);

  ASSERT_FALSE(fault);
  EXPECT_EQ(fault.error().address, kArgumentStack);
  EXPECT_EQ(value(plan, 0), 42u);
}

}  // namespace
}  // namespace ringside::providers
