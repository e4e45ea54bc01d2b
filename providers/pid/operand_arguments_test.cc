#include "providers/pid/operand_arguments.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <string>

#include "dif/testing/fake_guest.h"

namespace ringside::providers {
namespace {

using Kind = ArgumentOperand::Kind;

ArgumentOperand one(std::string_view text) {
  const auto operands = parse_operands(text);
  EXPECT_EQ(operands.size(), 1u) << text;
  return operands.empty() ? ArgumentOperand() : operands.front();
}

TEST(OperandArguments, ASizeSaysHowManyBytesAndWhetherThereIsASign) {
  EXPECT_EQ(one("-2@%di").bytes, 2u);
  EXPECT_TRUE(one("-2@%di").is_signed);
  EXPECT_FALSE(one("8@%rdi").is_signed);
  for (const char* bad : {"3@%rax", "%rax", "@%rax", "16@%xmm0", "8f@%xmm0", "x@%rax", "8@"}) {
    EXPECT_EQ(one(bad).kind, Kind::Unknown) << bad;
  }
}

TEST(OperandArguments, RegistersHaveTheNamesOfAllTheirParts) {
  const std::pair<const char*, arch::Register> names[] = {
      {"rax", &Registers::rax}, {"eax", &Registers::rax},  {"ax", &Registers::rax},
      {"al", &Registers::rax},  {"edi", &Registers::rdi},  {"sil", &Registers::rsi},
      {"bpl", &Registers::rbp}, {"esp", &Registers::rsp},  {"r8", &Registers::r8},
      {"r8d", &Registers::r8},  {"r15w", &Registers::r15}, {"r10b", &Registers::r10},
      {"cx", &Registers::rcx},  {"ebx", &Registers::rbx},  {"dl", &Registers::rdx},
  };
  for (const auto& [name, which] : names) {
    const ArgumentOperand found = one(std::string("8@%") + name);
    EXPECT_EQ(found.kind, Kind::Register) << name;
    EXPECT_EQ(found.which, which) << name;
    EXPECT_FALSE(found.is_high_byte) << name;
  }
  EXPECT_TRUE(one("1@%dh").is_high_byte);
  for (const char* bad : {"xmm0", "rip", "r16", "eaxx", "er8", "r8x", "", "st(0)"}) {
    EXPECT_EQ(one(std::string("8@%") + bad).kind, Kind::Unknown) << bad;
  }
}

TEST(OperandArguments, ConstantsAndMemory) {
  EXPECT_EQ(one("-4@$-7").constant, static_cast<std::uint64_t>(-7));
  EXPECT_EQ(one("8@$0x10").constant, 16u);
  EXPECT_EQ(one("8@$name").kind, Kind::Unknown);

  const disasm::MemoryOperand plain = one("8@-20(%rbp)").memory;
  EXPECT_EQ(plain.base, &Registers::rbp);
  EXPECT_EQ(plain.displacement, -20);
  const disasm::MemoryOperand full = one("4@16(%rax,%rdx,8)").memory;
  EXPECT_EQ(full.base, &Registers::rax);
  EXPECT_EQ(full.index, &Registers::rdx);
  EXPECT_EQ(full.scale, 8u);
  EXPECT_EQ(one("8@(%rsp)").memory.displacement, 0);
  EXPECT_EQ(one("8@(,%rcx,4)").memory.base, nullptr);
  for (const char* bad : {"8@name(%rip)", "8@()", "8@4(%eax)", "8@(%rax,%rdx,3)",
                          "8@(%rax,%rdx,8,1)", "8@4(%rax", "8@%fs:8(%rax)"}) {
    EXPECT_EQ(one(bad).kind, Kind::Unknown) << bad;
  }
}

TEST(OperandArguments, AreSeparatedBySpaces) {
  EXPECT_TRUE(parse_operands("").empty());
  EXPECT_TRUE(parse_operands("   ").empty());
  EXPECT_EQ(parse_operands("  8@%rax  4@$1 ").size(), 2u);
  EXPECT_EQ(
      parse_operands("1@%al 1@%al 1@%al 1@%al 1@%al 1@%al 1@%al 1@%al 1@%al 1@%al 1@%al").size(),
      dif::kMaxProbeArguments);
}

TEST(OperandArguments, AnythingCanBeRead) {
  std::mt19937_64 random(1);
  constexpr std::string_view kLetters = "8421-@%$(),raxdip0xs ";
  for (unsigned round = 0; round < 20000; ++round) {
    std::string text(random() % 24, ' ');
    for (char& c : text) c = kLetters[random() % kLetters.size()];
    for (const ArgumentOperand& each : parse_operands(text)) {
      EXPECT_EQ(each.kind == Kind::Register, each.which != nullptr) << text;
    }
  }
}

class Values : public testing::Test {
 protected:
  Result<std::uint64_t, Fault> value(const char* text) {
    const OperandArguments arguments(parse_operands(text));
    const ArgumentPlan plan = arguments.plan();
    return plan.value(0, {.registers = registers_, .kernel = guest_.kernel(), .guest = &guest_});
  }
  Registers registers_{};
  dif::testing::FakeGuest guest_;
};

TEST_F(Values, AreCutAndHaveSigns) {
  registers_.rdi = 0x1234'5678'9abc'fffe;
  EXPECT_EQ(value("8@%rdi"), 0x1234'5678'9abc'fffeu);
  EXPECT_EQ(value("-2@%di"), static_cast<std::uint64_t>(-2));
  EXPECT_EQ(value("2@%di"), 0xfffeu);
  registers_.rdx = 0xab12;
  EXPECT_EQ(value("1@%dh"), 0xabu);
  EXPECT_EQ(value("-1@%dh"),
            static_cast<std::uint64_t>(std::int64_t{static_cast<std::int8_t>(0xab)}));
  EXPECT_EQ(value("-4@$-1"), UINT64_MAX);
  EXPECT_EQ(value("4@$-1"), UINT32_MAX);
  EXPECT_FALSE(value("8@name(%rip)"));
}

TEST_F(Values, ADistanceFromRipIsOneFromTheProbe) {
  guest_.user_memory.put_value(0x5010, std::uint32_t{77});
  registers_.rip = 0x5000;
  EXPECT_EQ(value("4@16(%rip)"), 77u);
}

TEST_F(Values, MemoryIsTheProcesss) {
  const std::array<std::uint8_t, 8> there{0xfe, 0xff, 3, 4, 5, 6, 7, 8};
  guest_.user_memory.put(0x5000, std::as_bytes(std::span(there)));
  registers_.rax = 0x5010;
  EXPECT_EQ(value("-2@-16(%rax)"), static_cast<std::uint64_t>(-2));
  EXPECT_EQ(value("8@-16(%rax)"), 0x0807'0605'0403'fffeu);
  registers_.rcx = 2;
  EXPECT_EQ(value("2@-20(%rax,%rcx,4)"), 0x0605u);
  registers_.rax = 0x9000;
  EXPECT_FALSE(value("8@(%rax)"));
}

TEST(RecordedOperands, MemoryByARegisterIsCopiedAndMayBeAnAddress) {
  const OperandArguments arguments(
      parse_operands("8@8(%rsp) 4@8(%rsp) 8@(%rax,%rcx,8) 8@%rax 8@8(%rip)"));
  using Base = dif::RecordAddress::Base;
  const RecordedArgument word = arguments.recorded(0), half = arguments.recorded(1);
  ASSERT_EQ(word.code.needs.loads.size(), 1u);
  EXPECT_EQ(word.code.needs.loads[0], (dif::RecordLoad{{Base::Argument, 0, 8}, 8, true}));
  EXPECT_EQ(word.code.plan.arguments[0], ArgumentSource::in(&Registers::rsp));
  ASSERT_TRUE(word.address);
  EXPECT_EQ(word.address->base, Base::Load);
  EXPECT_EQ(half.code.needs.loads[0].bytes, 4u);
  EXPECT_FALSE(half.address);
  EXPECT_TRUE(arguments.recorded(2).code.needs.obstacle);
  EXPECT_FALSE(arguments.recorded(3).code.needs.obstacle);
  EXPECT_TRUE(arguments.recorded(4).code.needs.obstacle);
}

}  // namespace
}  // namespace ringside::providers
