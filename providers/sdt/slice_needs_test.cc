#include "providers/sdt/slice_needs.h"

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "disasm/code_for_tests.h"
#include "disasm/evaluation.h"

namespace ringside::providers {
namespace {

using Base = dif::RecordAddress::Base;
using dif::RecordAddress, dif::RecordLoad;
using Value = SliceNeeds::Value;
using disasm::code;

constexpr std::size_t kInRax = 0, kInRdx = 2, kInRsp = 4, kInRsi = 6, kInRdi = 7;
constexpr std::uint64_t kCpuNumber = 0x1fb40;

class Needs : public testing::Test {
 protected:
  /// Runs the instructions one after the other.
  void run(const std::vector<std::byte>& bytes) {
    GuestVirt at = disasm::kHere;
    for (auto rest = std::span(bytes); !rest.empty();) {
      const auto in = disasm::decode_evaluable(rest, at);
      ASSERT_TRUE(in) << in.error().message;
      needs_.step(state_, *in);
      rest = rest.subspan(in->length);
      at = in->next();
    }
  }
  Value value(std::size_t which) { return needs_.resolved(state_.registers.at(which)); }
  const std::vector<RecordLoad>& loads() { return needs_.needs().loads; }
  bool prevented() { return needs_.needs().obstacle.has_value(); }

  SliceNeeds needs_{CpuNumber{kCpuNumber, 3}};
  SliceNeeds::State state_ = SliceNeeds::first();
};

TEST_F(Needs, ARegisterOfTheTrapIsAnArgumentOfThePlan) {
  run(code({0x48, 0x89, 0xf8, 0x48, 0x83, 0xc0, 0x20}));  // mov rax, rdi; add rax, 32

  EXPECT_EQ(value(kInRax).address, (RecordAddress{Base::Argument, 0, 0x20}));
  EXPECT_EQ(value(kInRdi).address, (RecordAddress{Base::Argument, 0, 0}));
  EXPECT_EQ(value(kInRsi).address, (RecordAddress{Base::Argument, 1, 0}));
  EXPECT_EQ(needs_.plan().arguments[0], ArgumentSource::in(&Registers::rdi));
  EXPECT_EQ(needs_.plan().arguments[1], ArgumentSource::in(&Registers::rsi));
  EXPECT_TRUE(loads().empty());
}

TEST_F(Needs, MoreRegistersThanAPlanHasCannotBeTold) {
  for (std::size_t n = 0; n < 10; ++n) EXPECT_TRUE(value(n).address);
  EXPECT_FALSE(prevented());
  EXPECT_FALSE(value(10).address);
  EXPECT_TRUE(prevented());
}

TEST_F(Needs, AWordThatIsLoadedIsAnAddressAndFewerBytesAreANumber) {
  // mov rax, [rdi + 8]; lea rsi, [rax - 4]; movzx edx, byte ptr [rax]
  run(code({0x48, 0x8b, 0x47, 0x08, 0x48, 0x8d, 0x70, 0xfc, 0x0f, 0xb6, 0x10}));

  EXPECT_EQ(loads(), (std::vector<RecordLoad>{{{Base::Argument, 0, 8}, 8, false},
                                              {{Base::Load, 0, 0}, 1, false}}));
  EXPECT_EQ(value(kInRsi).address, (RecordAddress{Base::Load, 0, -4}));
  EXPECT_EQ(value(kInRdx), (Value{std::nullopt, 255}));
}

TEST_F(Needs, ASmallNumberIsAnIndex) {
  // movzx edx, byte ptr [rdi]; mov rax, [rsi + rdx * 8 + 16]; mov rax, [rax]
  run(code({0x0f, 0xb6, 0x17, 0x48, 0x8b, 0x44, 0xd6, 0x10}));
  EXPECT_EQ(loads().back(), (RecordLoad{{Base::Argument, 1, 16}, 8 + 255 * 8, false}));
  EXPECT_FALSE(prevented());
  run(code({0x48, 0x8b, 0x00}));
  EXPECT_TRUE(prevented()) << "which of them it is nobody knows";
}

TEST_F(Needs, ACpuThatAsksWhetherItIsOnlineLooksAtAllOfTheMask) {
  // mov eax, gs:[0x1fb40]; mov eax, eax; bt [0xffffffff82000000], rax
  run(code({0x65, 0x8b, 0x04, 0x25, 0x40, 0xfb, 0x01, 0x00, 0x89, 0xc0}));
  run(code({0x48, 0x0f, 0xa3, 0x04, 0x25, 0x00, 0x00, 0x00, 0x82}));

  EXPECT_EQ(loads(),
            (std::vector<RecordLoad>{{{Base::PerCpu, 0, kCpuNumber}, 4, false},
                                     {{Base::Constant, 0, std::int64_t{-0x7e00'0000}}, 1, false}}));
  EXPECT_FALSE(prevented());
}

TEST_F(Needs, ABitThatMayBeAnyIsNotTold) {
  run(code({0x48, 0x0f, 0xa3, 0x07}));  // bt [rdi], rax
  EXPECT_TRUE(prevented());
}

TEST_F(Needs, WhatWasWrittenIsNotOfTheGuest) {
  // push rdi; mov rax, [rsp]; pop rdx
  run(code({0x57, 0x48, 0x8b, 0x04, 0x24, 0x5a}));

  EXPECT_TRUE(loads().empty());
  EXPECT_EQ(value(kInRax), value(kInRdi));
  EXPECT_EQ(value(kInRdx), value(kInRdi));
  EXPECT_EQ(value(kInRsp).address->offset, 0);
}

TEST_F(Needs, APartOfAWordThatWasWrittenIsNoAddress) {
  // mov [rdi], eax; mov rdx, [rdi]; mov rdx, [rdx]
  run(code({0x89, 0x07, 0x48, 0x8b, 0x17}));
  EXPECT_FALSE(value(kInRdx).address);
  EXPECT_EQ(loads(), (std::vector<RecordLoad>{{{Base::Argument, 0, 0}, 8, false}}))
      << "the other four bytes are the guest's";
  EXPECT_FALSE(prevented());
  run(code({0x48, 0x8b, 0x12}));
  EXPECT_TRUE(prevented());
}

TEST_F(Needs, AnAddressOfTwoWaysIsNone) {
  run(code({0x48, 0x0f, 0x44, 0xc7}));  // cmove rax, rdi
  EXPECT_FALSE(value(kInRax).address);
  run(code({0x31, 0xc0, 0xba, 0x05, 0, 0, 0, 0x0f, 0x44, 0xc2}));  // xor; mov edx, 5; cmove
  EXPECT_EQ(value(kInRax).most, 5u);
}

TEST_F(Needs, AnInstructionThatChangesMemoryLooksAtItFirst) {
  run(code({0x65, 0xff, 0x04, 0x25, 0x48, 0xfb, 0x01, 0x00}));  // inc dword ptr gs:[0x1fb48]
  EXPECT_EQ(loads(), (std::vector<RecordLoad>{{{Base::PerCpu, 0, 0x1fb48}, 4, false}}));
}

TEST_F(Needs, MemoryOfTheProcessesSegmentIsNotTold) {
  run(code({0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0}));  // mov rax, fs:[40]
  EXPECT_TRUE(prevented());
}

}  // namespace
}  // namespace ringside::providers
