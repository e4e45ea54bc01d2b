#include "vmm/arch/arch.h"

#include <gtest/gtest.h>

#include <set>

namespace ringside::arch {
namespace {

TEST(Registers, HaveTheirNumbersOfInstructions) {
  Registers r;
  r.rax = 100, r.rsp = 104, r.rdi = 107, r.r15 = 115;

  EXPECT_EQ(r.*kByEncoding[0], 100u);
  EXPECT_EQ(r.*kByEncoding[4], 104u);
  EXPECT_EQ(r.*kByEncoding[7], 107u);
  EXPECT_EQ(r.*kByEncoding[15], 115u);
  for (const Register which : kByEncoding) EXPECT_NE(which, nullptr);
}

TEST(Registers, HaveDsNumbersButForThoseThatATrapDoesNotKeep) {
  Registers r;
  r.r15 = 1, r.rip = 2, r.gs_base = 3;

  EXPECT_EQ(r.*kByDNumber[0], 1u);
  EXPECT_EQ(r.*kByDNumber[17], 2u);
  EXPECT_EQ(r.*kByDNumber[27], 3u);
  std::set<std::size_t> unkept;
  for (std::size_t n = 0; n < kByDNumber.size(); ++n) {
    if (kByDNumber[n] == nullptr) unkept.insert(n);
  }
  EXPECT_EQ(unkept, (std::set<std::size_t>{15, 16, 22, 23, 24, 25}));
}

TEST(SavedRegisters, AreInTheOrderThatPtraceShows) {
  EXPECT_EQ(saved_word(&Registers::r15).word, 0u);
  EXPECT_EQ(saved_word(&Registers::rdi).word, 14u);
  EXPECT_EQ(saved_word(&Registers::rip).word, 16u);
  EXPECT_EQ(saved_word(&Registers::ss).word, 20u);
  EXPECT_EQ(saved_word(&Registers::rflags).member, "flags");
  std::set<std::size_t> words{kSavedNumber};
  for (const SavedWord& saved : kSavedWords) words.insert(saved.word);
  EXPECT_EQ(words.size(), std::tuple_size_v<SavedRegisters>) << "no word twice, none left out";
}

TEST(SavedRegisters, ComeBackAsTheyWere) {
  Registers r;
  std::uint64_t value = 0x1111'0000'0000'0000;
  for (const SavedWord& saved : kSavedWords) r.*saved.which = ++value;
  r.cs = 0x33, r.ss = 0x2b;

  EXPECT_EQ(unsave(save(r)), r);
}

TEST(SavedRegisters, OfASegmentOnlyTheSelectorCounts) {
  SavedRegisters words{};
  words[saved_word(&Registers::cs).word] = 0x0003'0000'0000'0033;  // FRED keeps more there
  EXPECT_EQ(unsave(words).cs, 0x33u);
}

TEST(Conditions, AreThoseOfTheFlags) {
  constexpr Condition kBelow = 2, kEqual = 4, kNotEqual = 5, kLess = 12, kGreater = 15;
  EXPECT_TRUE(condition_holds(kEqual, kZeroFlag));
  EXPECT_FALSE(condition_holds(kNotEqual, kZeroFlag));
  EXPECT_TRUE(condition_holds(kBelow, kCarryFlag));
  EXPECT_TRUE(condition_holds(kLess, kSignFlag));
  EXPECT_FALSE(condition_holds(kLess, kSignFlag | kOverflowFlag));
  EXPECT_TRUE(condition_holds(kGreater, kSignFlag | kOverflowFlag));
  EXPECT_TRUE(condition_holds(kNoCondition, 0));
}

TEST(GateDescriptor, KeepsItsHandlerInThreePieces) {
  GateDescriptor gate{};
  gate.set_handler(GuestVirt(0xffff'ffff'8123'4567));
  EXPECT_EQ(gate.handler().raw(), 0xffff'ffff'8123'4567u);
  EXPECT_FALSE(gate.is_interrupt_gate());
  gate.attributes = 0x8e01;
  EXPECT_TRUE(gate.is_interrupt_gate());
  EXPECT_EQ(gate.stack_table(), 1u);
}

TEST(Paging, TheKernelsHalfOfAnIsolatedPairIsTheEvenPage) {
  constexpr std::uint64_t kPcidAndFlags = 0x8000'0000'0000'0801;
  constexpr std::uint64_t kKernels = 0x12'3456'6000, kUsers = kKernels | kUserHalf;

  EXPECT_EQ(root_of(kUsers | kPcidAndFlags), GuestPhys(kUsers));
  EXPECT_EQ(kernel_half_root(kUsers | kPcidAndFlags), GuestPhys(kKernels));
  EXPECT_EQ(kernel_half_root(kKernels | kPcidAndFlags), GuestPhys(kKernels));
}

TEST(Paging, ARootThatIsNowhereTranslatesNothing) {
  const auto nothing = [](GuestPhys) { return std::optional<std::uint64_t>(); };
  EXPECT_FALSE(walk(nothing, PageTable{kNoRoot}, GuestVirt(0), 1));
}

}  // namespace
}  // namespace ringside::arch
