// Values and conditions of stable probes over a fake guest's memory and types.
#include "providers/stable/place_value.h"

#include <gtest/gtest.h>

#include "providers/testing/fake_guest.h"
#include "vmm/page_walk.h"

namespace ringside::providers {
namespace {

constexpr std::uint64_t kPlacedObject = 0x40000, kSecondObject = 0x41000;

/// struct inner { int low; short high; }; struct object { struct other *next; struct inner in;
/// unsigned flag:1, kind:3; char state; }; struct other { long number; }.
class PlaceValues : public ::testing::Test {
 protected:
  PlaceValues() {
    FakeKernel::write_task(memory_);
    TypeGraph& types = kernel_.own_types();
    const TypeId number = *types.find("int"), small = *types.find("short"),
                 wide = *types.find("long"), letter = *types.find("unsigned char");
    const Member of_other[] = {{"number", wide, 0, 0}};
    const TypeId other = types.add_struct(TypeKind::Struct, "other", 8, of_other);
    const Member of_inner[] = {{"low", number, 0, 0}, {"high", small, 32, 0}};
    const TypeId inner = types.add_struct(TypeKind::Struct, "inner", 8, of_inner);
    const Member of_object[] = {{"next", types.pointer_to(other), 0, 0},
                                {"in", inner, 64, 0},
                                {"flag", letter, 128, 1},
                                {"kind", letter, 129, 3},
                                {"state", letter, 136, 0}};
    const TypeId object = types.add_struct(TypeKind::Struct, "object", 24, of_object);
    const Member of_task[] = {{"pid", number, 16 * 8, 0}, {"tgid", number, 20 * 8, 0}};
    const TypeId task = types.add_struct(TypeKind::Struct, "task_struct", 64, of_task);
    const Enumerator reasons[] = {{"REASON_NONE", 0}, {"REASON_AGE", 4000}};
    types.index(types.add_enum("reason", 4, false, reasons));
    for (const TypeId id : {other, object, task}) types.index(id), types.pointer_to(id);

    memory_.put64(kPlacedObject, kernel_address(kSecondObject).raw());
    memory_.put32(kPlacedObject + 8, 0xffff'fff0);  // low: -16
    memory_.put32(kPlacedObject + 12, 0x7);
    memory_.put32(kPlacedObject + 16, 0xff'0b);  // flag 1, kind 5, state 255
    memory_.put64(kSecondObject, 4000);
    registers_.rdi = kernel_address(kPlacedObject).raw();
    registers_.rsi = 0xdead'beef'0000'0010;  // an int: its upper half is whatever was there
    registers_.rax = static_cast<std::uint64_t>(-2);
  }
  ArgumentMoment moment() const {
    return {registers_, reader_, 0, {}, nullptr, kernel_address(kPercpu0)};
  }
  std::int64_t value(std::string_view text) {
    const auto made = entry_.value(text);
    EXPECT_TRUE(made) << made.error().message;
    const auto value = made->value(moment(), kernel_);
    EXPECT_TRUE(value) << text;
    return static_cast<std::int64_t>(value.value_or(0xbad));
  }
  bool holds(std::string_view text) {
    const auto made = entry_.condition(text);
    EXPECT_TRUE(made) << made.error().message;
    return made->holds(moment(), kernel_);
  }

  FakeMemory memory_;
  FakeKernel kernel_;
  vmm::PageTableReader reader_{memory_.memory(), kernel_.table()};
  Registers registers_;
  PlaceCompiler entry_{kernel_, PlaceCompiler::End::Entry};
  PlaceCompiler return_{kernel_, PlaceCompiler::End::Return};
};

TEST_F(PlaceValues, MembersOfEachKindAreRead) {
  ASSERT_TRUE(entry_.define("object", "struct object *", "arg0"));
  EXPECT_EQ(value("object->next->number"), 4000);
  EXPECT_EQ(value("object->in.low"), -16);
  EXPECT_EQ(value("object->in.high"), 7);
  EXPECT_EQ(value("object->flag"), 1);
  EXPECT_EQ(value("object->kind"), 5);
  EXPECT_EQ(value("object->state"), 255);
}

TEST_F(PlaceValues, TermsAreJoinedFromLeftToRight) {
  ASSERT_TRUE(entry_.define("object", "struct object *", "arg0"));
  EXPECT_EQ(value("object->next->number + 96 - 100"), 3996);
  EXPECT_EQ(value("object->next->number + 1 & 255"), 4001 & 255);
  EXPECT_EQ(value("-object->in.high"), -7);
}

TEST_F(PlaceValues, ANativeIsAsWideAsItsType) {
  ASSERT_TRUE(entry_.define("flags", "int", "arg1"));
  EXPECT_EQ(value("flags"), 16);
  ASSERT_TRUE(entry_.define("object", "struct object *", "arg0"));
  ASSERT_TRUE(entry_.define("low", "int", "object->in.low - 1"));
  EXPECT_EQ(value("low"), -17);
}

TEST_F(PlaceValues, CurrentAndResultAreKnown) {
  EXPECT_EQ(value("current->pid"), 101);
  EXPECT_EQ(return_.define("error", "int", "-result")->value.value(moment(), kernel_).value(), 2u);
}

TEST_F(PlaceValues, AConstantOfTheKernelIsKnownByItsName) {
  ASSERT_TRUE(entry_.define("object", "struct object *", "arg0"));
  EXPECT_TRUE(holds("object->next->number == REASON_AGE"));
  EXPECT_FALSE(holds("object->next->number == REASON_NONE"));
  EXPECT_EQ(entry_.condition("object->kind == REASON_NEW").error().message,
            "this kernel has no constant REASON_NEW");
}

TEST_F(PlaceValues, ConditionsAreComparisonsThatAllHold) {
  ASSERT_TRUE(entry_.define("object", "struct object *", "arg0"));
  EXPECT_TRUE(holds("object->kind == 5 && object->flag != 0"));
  EXPECT_FALSE(holds("object->kind == 5 && object->flag == 0"));
  EXPECT_TRUE(holds("object->in.low < 0 && object->state > 254"));
  EXPECT_FALSE(holds("current->pid == current->tgid"));
  EXPECT_TRUE(holds(""));
}

TEST_F(PlaceValues, OfComparisonsInParenthesesOneHasToHold) {
  ASSERT_TRUE(entry_.define("object", "struct object *", "arg0"));
  EXPECT_TRUE(holds("(object->kind == 4 || object->flag == 1) && object->state == 255"));
  EXPECT_TRUE(holds("object->state == 255 && (object->kind == 5 || object->flag == 0)"));
  EXPECT_FALSE(holds("(object->kind == 4 || object->flag == 0) && object->state == 255"));
  EXPECT_FALSE(holds("(object->kind == 5 || object->flag == 0) && object->state == 254"));
}

TEST_F(PlaceValues, TheKernelsOwnAddressesAreKnown) {
  auto& table = kernel_.symbols_to_fill();
  table.add_module({"vmlinux", kernel_address(0x5000), 64, 0},
                   {{kernel_address(0x5000), 64, table.intern("bio_chain_endio"), 't', 0}});
  table.seal();
  EXPECT_EQ(static_cast<std::uint64_t>(value("&bio_chain_endio")), kernel_address(0x5000).raw());
  EXPECT_EQ(entry_.value("&absent").error().message, "this kernel has no absent");
}

TEST_F(PlaceValues, WhatCannotBeReadIsAFaultAndHoldsInNoComparison) {
  registers_.rdi = 0x4d00'0000'0000'0000;
  const auto object = entry_.define("object", "struct object *", "arg0");
  ASSERT_TRUE(object);
  EXPECT_FALSE(entry_.value("object->state")->value(moment(), kernel_));
  EXPECT_FALSE(holds("object->state == 0"));
  EXPECT_FALSE(holds("object->state != 0"));
}

TEST_F(PlaceValues, WhatAKernelLacksIsNamed) {
  ASSERT_TRUE(entry_.define("object", "struct object *", "arg0"));
  EXPECT_EQ(entry_.value("object->colour").error().message,
            "struct object of this kernel has no member colour");
  EXPECT_EQ(entry_.define("x", "struct absent *", "arg1").error().message,
            "this kernel has no type struct absent *");
}

}  // namespace
}  // namespace ringside::providers
