// The instructions of a function.
#include "providers/trap_points/sites/instruction_list.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "providers/trap_points/sites/text_for_tests.h"

namespace ringside::providers {
namespace {

using disasm::code;
using Names = std::vector<std::string>;

Names names(const InstructionList& list, GuestVirt function) {
  Names out;
  for (const auto& one : list.instructions) {
    out.push_back(
        fmt::format("{}-{:x}", disasm::name_of(one.kind), one.address.offset_from(function)));
  }
  return out;
}

Names listed(Text& text, const char* function) {
  const auto list = list_instructions(text, text.table(), text.symbol(function));
  return list ? names(*list, text.symbol(function).address) : Names{list.error().message};
}

TEST(InstructionList, HasEveryInstructionAndNoPadding) {
  Text text;
  // endbr64, the ftrace nop, push rbp, jz +1, cli, pop rbp, ret, padding, nops of a prefix
  text.put(0, code({0xf3, 0x0f, 0x1e, 0xfa, 0x0f, 0x1f, 0x44, 0, 0, 0x55, 0x74, 1, 0xfa, 0x5d, 0xc3,
                    0xcc, 0x90, 0x90}))
      .name(0, "f")
      .name(18, "g");

  EXPECT_EQ(listed(text, "f"),
            (Names{"other-0", "other-4", "store-9", "jcc-a", "cli-c", "load-d", "ret-e"}));
}

TEST(InstructionList, IsNotMadeToTellWhetherAnInstructionIsInIt) {
  Text text;
  // endbr64, the ftrace nop, add [rip + 1], rax, push rbp, ret
  text.put(0, code({0xf3, 0x0f, 0x1e, 0xfa, 0x0f, 0x1f, 0x44, 0, 0, 0x48, 0x01, 0x05, 1, 0, 0, 0,
                    0x55, 0xc3}))
      .put(0x20, code({0x48, 0x01, 0x05, 1, 0, 0, 0, 0xc3}))
      .name(0, "f")
      .name(0x20, "bare")
      .name(0x30, "end");
  const auto is_in = [&](const char* function, std::uint64_t at) {
    return has_instruction(text, text.table(), text.symbol(function), GuestVirt(kBase + at));
  };

  EXPECT_EQ(is_in("f", 0x9).value_or(false), true);
  EXPECT_EQ(is_in("f", 0xa).value_or(true), false) << "inside of it";
  EXPECT_EQ(is_in("f", 0x10).value_or(false), true);
  EXPECT_EQ(is_in("f", 0x20).value_or(true), false) << "beyond the function";
  EXPECT_FALSE(is_in("bare", 0x20)) << "no ftrace site";
}

TEST(InstructionList, KnowsTheFtraceSiteWhileTheGuestUsesIt) {
  Text text;
  text.put(0, code({0xcc, 0, 0, 0, 0, 0x55, 0xc3})).name(0, "f").name(0x10, "g");
  text.put_branch(0, {0xe8}, 0x800).name(0x800, "ftrace_caller");

  EXPECT_EQ(listed(text, "f"), (Names{"other-0", "store-5", "ret-6"}));
}

TEST(InstructionList, GoesOnPastIntThreesThatAreNeverReached) {
  Text text;
  // ftrace nop, jmp rax, int3 against straight-line speculation, ret
  text.put(0, code({0x0f, 0x1f, 0x44, 0, 0, 0xff, 0xe0, 0xcc, 0xc3})).name(0, "f").name(9, "g");

  EXPECT_EQ(listed(text, "f"), (Names{"other-0", "jmp-5", "ret-8"}));
}

TEST(InstructionList, EndsWhereTheTextIsNotKnown) {
  Text text;
  text.put(0, code({0x0f, 0x1f, 0x44, 0, 0, 0x55, 0x06, 0xc3})).name(0, "f").name(8, "g");

  const auto list = list_instructions(text, text.table(), text.symbol("f"));

  ASSERT_TRUE(list);
  EXPECT_EQ(names(*list, text.symbol("f").address), (Names{"other-0", "store-5"}));
  EXPECT_NE(list->trouble.find("does not decode"), std::string::npos) << list->trouble;
}

TEST(InstructionList, IsOfFunctionsWithAnFtraceSiteAndTheirColdParts) {
  Text text;
  text.put(0x00, code({0x0f, 0x1f, 0x44, 0, 0, 0xc3})).name(0x00, "f");
  text.put(0x10, code({0x55, 0xc3})).name(0x10, "f.cold");
  text.put(0x20, code({0x55, 0xc3})).name(0x20, "bare").name(0x30, "bare.cold").name(0x40, "end");

  EXPECT_EQ(listed(text, "f.cold"), (Names{"store-0", "ret-1"}));
  EXPECT_EQ(listed(text, "bare"), (Names{"bare has no ftrace site"}));
  EXPECT_EQ(listed(text, "bare.cold"), (Names{"bare.cold has no ftrace site"}));
}

TEST(InstructionList, IsOfFunctionsWhoseEndIsKnown) {
  Text text;
  text.put(0, code({0x0f, 0x1f, 0x44, 0, 0, 0xc3})).name(0, "f");
  text.name(kMaxFunction, "longer").name(2 * kMaxFunction + 1, "end");

  EXPECT_TRUE(list_instructions(text, text.table(), text.symbol("f")));
  EXPECT_EQ(listed(text, "longer"), (Names{"longer has no known end"}));
}

TEST(InstructionList, SeesThroughThunks) {
  Text text;
  text.put(0, code({0x0f, 0x1f, 0x44, 0, 0})).name(0, "f").name(0x10, "g");
  text.put_branch(5, {0xe8}, 0x800).put_branch(10, {0xe9}, 0x900);
  text.name(0x800, "__x86_indirect_thunk_r11").name(0x900, "__x86_return_thunk").name(0xa00, "end");

  const auto list = list_instructions(text, text.table(), text.symbol("f"));

  ASSERT_TRUE(list);
  EXPECT_EQ(names(*list, text.symbol("f").address), (Names{"other-0", "call-5", "ret-a"}));
  EXPECT_TRUE(list->instructions[1].target_register == &Registers::r11);
}

}  // namespace
}  // namespace ringside::providers
