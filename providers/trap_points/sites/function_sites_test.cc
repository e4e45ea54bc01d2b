#include "providers/trap_points/sites/function_sites.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "disasm/code_for_tests.h"
#include "providers/trap_points/sites/text_for_tests.h"

namespace ringside::providers {
namespace {

using disasm::code;
using guest_linux::Symbol;
using guest_linux::SymbolTable;

TEST(ColdPart, IsTheFunctionsThatItsNameBeginsWith) {
  for (const char* name : {"foo.cold", "foo.cold.0", "foo.cold.12", "foo.cold.9"}) {
    EXPECT_EQ(owner_of_cold_part(name), "foo") << name;
  }
  EXPECT_EQ(owner_of_cold_part("foo.isra.0.cold"), "foo.isra.0");
  EXPECT_EQ(owner_of_cold_part("foo.cold.1.cold"), "foo.cold.1") << "of the last one";
  for (const char* name : {"", "foo", "cold", "food", "foo.cold.", "foo.cold1", "foo.cold.1a1",
                           "foo.coldd", "foo.cold.d", "foo.colder", "foo.1"}) {
    EXPECT_EQ(owner_of_cold_part(name), "") << name;
  }
}

TEST(ReturnSites, AreThoseOfAFunctionUpToAMebibyte) {
  Text text;
  text.put(0x000, code({0x90, 0xc3})).name(0x000, "most");
  text.name(kMaxFunction, "next").name(2 * kMaxFunction + 1, "end");

  const auto sites = return_sites(text, text.table(), text.symbol("most"));
  ASSERT_TRUE(sites) << sites.error().message;
  EXPECT_EQ(sites->size(), 1u);
  const auto more = return_sites(text, text.table(), text.symbol("next"));
  ASSERT_FALSE(more);
  EXPECT_NE(more.error().message.find("no known end"), std::string::npos);
  EXPECT_EQ(kMaxFunction, 0x10'0000u);
}

TEST(EntrySite, IsBehindTheFtraceNopInEveryForm) {
  Text text;
  text.put(0x000, code({0x0f, 0x1f, 0x44, 0, 0, 0x55, 0xc3})).name(0x000, "plain");
  text.put(0x100, code({0xf3, 0x0f, 0x1e, 0xfa, 0x0f, 0x1f, 0x44, 0, 0, 0x55, 0xc3}))
      .name(0x100, "endbr");
  text.put(0x200, code({0x66, 0x0f, 0x1f, 0, 0x0f, 0x1f, 0x44, 0, 0, 0x55, 0xc3}))
      .name(0x200, "sealed");
  text.put(0x300, code({0x0f, 0x1f, 0x40, 0xd6, 0x0f, 0x1f, 0x44, 0, 0, 0x55, 0xc3}))
      .name(0x300, "sealed_later");
  text.put(0x400, code({0x66, 0x66, 0x66, 0x66, 0x90, 0x55, 0xc3})).name(0x400, "k8");
  text.put(0x500, code({0xcc, 0x66, 0x66, 0x66, 0x90, 0x55, 0xc3})).name(0x500, "k8_rewritten");
  text.name(0x600, "end");

  EXPECT_EQ(entry_site(text, text.symbol("plain"))->raw(), kBase + 5);
  EXPECT_EQ(entry_site(text, text.symbol("endbr"))->raw(), kBase + 0x109);
  EXPECT_EQ(entry_site(text, text.symbol("sealed"))->raw(), kBase + 0x209);
  EXPECT_EQ(entry_site(text, text.symbol("sealed_later"))->raw(), kBase + 0x309);
  EXPECT_EQ(entry_site(text, text.symbol("k8"))->raw(), kBase + 0x405);
  EXPECT_EQ(entry_site(text, text.symbol("k8_rewritten"), &text.table())->raw(), kBase + 0x505);
}

TEST(EntrySite, RefusesFunctionsWithoutOne) {
  Text text;
  text.put(0x000, code({0x55, 0xc3})).name(0x000, "notrace");
  text.put(0x100, code({0x0f, 0x1f, 0x44, 0, 0})).name(0x100, "cut").name(0x105, "end");
  for (const std::uint64_t at : {0x200, 0x300}) {  // mov rbp, rsp behind the site
    text.put(at, code({0x0f, 0x1f, 0x44, 0, 0, 0x48, 0x89, 0xe5}));
  }
  text.name(0x200, "longer").name(0x207, "after_longer");
  text.name(0x300, "filled").name(0x308, "after_filled");
  text.name(0xffc, "at_the_edge");

  EXPECT_FALSE(entry_site(text, text.symbol("notrace")));
  EXPECT_FALSE(entry_site(text, text.symbol("cut")));
  EXPECT_FALSE(entry_site(text, text.symbol("longer")));
  EXPECT_TRUE(entry_site(text, text.symbol("filled")));
  EXPECT_FALSE(entry_site(text, text.symbol("at_the_edge")));
}

TEST(EntrySite, TakesTheCallOfAGuestThatTracesItself) {
  Text text;
  text.put_branch(0x000, {0xe8}, 0x800).put(0x005, code({0x55, 0xc3})).name(0x000, "traced");
  text.put_branch(0x100, {0xe8}, 0x900).put(0x105, code({0x55, 0xc3})).name(0x100, "caller");
  text.put_branch(0x200, {0xe8}, 0x7ff0).put(0x205, code({0x55})).name(0x200, "direct");
  text.map(0x7ff0);
  text.put_branch(0x300, {0xe8}, 0xb00).put(0x305, code({0x55, 0xc3})).name(0x300, "mapper");
  text.name(0x800, "ftrace_caller").name(0x900, "helper").name(0xa00, "end");
  text.name(0xb00, "ftrace_lookup_ip").name(0xc00, "rest");

  EXPECT_TRUE(entry_site(text, text.symbol("traced"), &text.table()));
  EXPECT_FALSE(entry_site(text, text.symbol("caller"), &text.table())) << "a call of its own";
  EXPECT_FALSE(entry_site(text, text.symbol("mapper"), &text.table())) << "a part of ftrace";
  EXPECT_TRUE(entry_site(text, text.symbol("direct"), &text.table())) << "a trampoline";
  EXPECT_FALSE(entry_site(text, text.symbol("traced"))) << "without symbols nobody can tell";
}

TEST(EntrySite, IsFoundWhileTheGuestsFtraceRewritesIt) {
  Text text;
  text.put(0x000, code({0xcc, 0x1f, 0x44, 0, 0, 0x55, 0xc3})).name(0x000, "from_nop");
  text.put_branch(0x100, {0xcc}, 0x800).put(0x105, code({0x55, 0xc3})).name(0x100, "from_call");
  text.put(0x200, code({0xcc, 0x55, 0xc3})).name(0x200, "other");
  text.name(0x800, "ftrace_caller").name(0xa00, "end");

  EXPECT_TRUE(entry_site(text, text.symbol("from_nop"), &text.table()));
  EXPECT_EQ(return_sites(text, text.table(), text.symbol("from_nop"))->size(), 1u);
  EXPECT_TRUE(entry_site(text, text.symbol("from_call"), &text.table()));
  EXPECT_FALSE(entry_site(text, text.symbol("other"), &text.table()));
}

Result<void> enters_once(Text& text, const char* name) {
  const auto site = entry_site(text, text.symbol(name), &text.table());
  EXPECT_TRUE(site) << name;
  return check_entered_once(text, text.table(), text.symbol(name), *site);
}

TEST(EntrySite, IsNoneInStartUpTextThatTheKernelHasOverwritten) {
  Text text;
  text.name(0x000, "start_up").name(0x100, "end");
  // Where int3s would lead to as the distance of a call.
  text.map(0x5 + 0xffffffffccccccccu);

  EXPECT_FALSE(entry_site(text, text.symbol("start_up"), &text.table()));
}

TEST(EnteredOnce, RefusesTheHeadOfALoop) {
  Text text;
  const auto nop = code({0x0f, 0x1f, 0x44, 0, 0});
  text.put(0x000, nop).put(0x005, code({0x90, 0x75, 0xfd, 0xc3})).name(0x000, "near");
  text.put(0x100, nop)
      .put(0x105, code({0x90}))
      .put_branch(0x106, {0x0f, 0x85}, 0x105)
      .put(0x10c, code({0xc3}))
      .name(0x100, "far");
  text.put(0x200, nop)
      .put_branch(0x205, {0x0f, 0x85}, 0x800)
      .put(0x20b, code({0xc3}))
      .name(0x200, "through_cold");
  text.put_branch(0x800, {0xe9}, 0x205).name(0x800, "through_cold.cold");
  text.put(0x300, nop).put(0x305, code({0x90, 0xe2, 0xfd, 0xc3})).name(0x300, "counted");
  // mov $0xfd75, %eax: its operand is no jump, though it looks like one to the first instruction.
  text.put(0x400, nop).put(0x405, code({0xb8, 0x75, 0xfd, 0, 0, 0xc3})).name(0x400, "straight");
  text.put(0x500, nop).put(0x505, code({0x90, 0x90, 0x75, 0xfd, 0xc3})).name(0x500, "behind");
  text.put(0x580, nop).put(0x585, code({0x90})).put_branch(0x586, {0xe9}, 0x585).name(0x580, "all");
  text.put(0x700, nop).put(0x705, code({0x90, 0x70, 0xfd, 0xc3})).name(0x700, "overflow");
  text.put(0x740, nop).put(0x745, code({0x90, 0x7f, 0xfd, 0xc3})).name(0x740, "greater");
  text.name(0x600, "next").name(0x780, "last").name(0x900, "end");

  text.name(0x58b, "behind_all");

  for (const char* name :
       {"near", "far", "through_cold", "counted", "all", "overflow", "greater"}) {
    const auto once = enters_once(text, name);
    ASSERT_FALSE(once) << name;
    EXPECT_NE(once.error().message.find("begins with a loop"), std::string::npos);
  }
  EXPECT_TRUE(enters_once(text, "straight"));
  EXPECT_TRUE(enters_once(text, "behind"));
}

TEST(EnteredOnce, RefusesWhereASwitchLeads) {
  Text text;
  const auto nop = code({0x0f, 0x1f, 0x44, 0, 0});
  const auto table = static_cast<std::uint32_t>(kBase + 0xc00);
  for (const std::uint64_t at : {0x000, 0x100, 0x180}) {
    text.put(at, nop).put(at + 5, code({0xff, 0x24, 0xc5, 0, 0, 0, 0, 0xc3}));
    const std::uint32_t place = table + static_cast<std::uint32_t>(at);
    text.put(at + 8, {std::as_bytes(std::span(&place, 1)).begin(),
                      std::as_bytes(std::span(&place, 1)).end()});
  }
  text.name(0x000, "loops").name(0x100, "leaves").name(0x180, "at_once").name(0x200, "end");
  for (const auto& [at, place] :
       {std::pair(0xc00, 0x00c), std::pair(0xc08, 0x005), std::pair(0xd00, 0x10c),
        std::pair(0xd08, 0x005), std::pair(0xd80, 0x185), std::pair(0xd88, 0x005)}) {
    const std::uint64_t entry = kBase + static_cast<std::uint64_t>(place);
    text.put(static_cast<std::uint64_t>(at), {std::as_bytes(std::span(&entry, 1)).begin(),
                                              std::as_bytes(std::span(&entry, 1)).end()});
  }

  EXPECT_FALSE(enters_once(text, "loops"));
  EXPECT_FALSE(enters_once(text, "at_once"));
  EXPECT_TRUE(enters_once(text, "leaves"));
}

TEST(ReturnSites, AreRefusedWhereABreakpointHidesAnInstruction) {
  Text text;
  text.put(0x000, code({0xcc, 0x5f, 0xc3})).name(0x000, "first");      // pop r15 or pop rdi
  text.put(0x100, code({0x90, 0xcc, 0xc3})).name(0x100, "behind");     // one byte, or more
  text.put(0x200, code({0x75, 0x02, 0xcc, 0xc3})).name(0x200, "jcc");  // may fall through
  text.put_branch(0x300, {0xe8}, 0x800).put(0x305, code({0xcc, 0xc3})).name(0x300, "call");
  text.put_branch(0x400, {0xe8}, 0x800).name(0x400, "never_back").name(0x410, "gap");
  text.put_branch(0x480, {0xe8}, 0x800).put(0x490, code({0x90, 0xc3})).name(0x480, "unnamed_next");
  text.put(0x500, code({0xc3, 0xcc, 0x90, 0xc3})).name(0x500, "straight_line_speculation");
  text.put_branch(0x540, {0xe8}, 0x800).name(0x540, "never_back_uneven").name(0x54b, "uneven");
  text.put_branch(0x56a, {0xe8}, 0x800)
      .put(0x570, code({0xc3}))
      .name(0x56a, "one");  // int3 at 0x56f
  text.put_branch(0x589, {0xe8}, 0x800).put(0x590, code({0xc3})).name(0x589, "two");
  text.put_branch(0x5a9, {0xe8}, 0x800).put(0x5b1, code({0xc3})).name(0x5a9, "two_uneven");
  text.name(0x600, "more").name(0x800, "callee").name(0xa00, "end");

  for (const char* name : {"first", "behind", "jcc", "call", "one", "two_uneven"}) {
    EXPECT_FALSE(return_sites(text, text.table(), text.symbol(name))) << name;
  }
  EXPECT_TRUE(return_sites(text, text.table(), text.symbol("never_back")));
  EXPECT_TRUE(return_sites(text, text.table(), text.symbol("never_back_uneven")));
  EXPECT_TRUE(return_sites(text, text.table(), text.symbol("two"))) << "up to what is aligned";
  EXPECT_TRUE(return_sites(text, text.table(), text.symbol("unnamed_next")));
  EXPECT_EQ(return_sites(text, text.table(), text.symbol("straight_line_speculation"))->size(), 2u);
}

TEST(ReturnSites, AreEveryRetAndEveryJumpThatLeaves) {
  Text text;
  text.put(0x000, code({0x55, 0x75, 0x02, 0x5d, 0xc3}))     // jne over pop, ret
      .put_branch(0x005, {0xe9}, 0x100)                     // tail call
      .put(0x00a, code({0xff, 0xe0}))                       // jmp *%rax
      .put(0x00c, code({0xeb, 0xf2}))                       // to the start
      .put_branch(0x00e, {0x0f, 0x84}, 0x100)               // je that leaves
      .put(0x014, code({0xff, 0x24, 0xc5, 0, 0, 0, 0x81}))  // jump table
      .name(0x000, "f");
  text.put(0x100, code({0xc3})).name(0x100, "g").name(0x200, "end");

  const auto sites = return_sites(text, text.table(), text.symbol("f"));

  ASSERT_TRUE(sites);
  ASSERT_EQ(sites->size(), 4u);
  EXPECT_EQ((*sites)[0].offset, 4u);
  EXPECT_TRUE((*sites)[0].has_value);
  EXPECT_EQ((*sites)[1].offset, 5u);
  EXPECT_FALSE((*sites)[1].has_value);
  EXPECT_EQ((*sites)[1].condition, 0xff);
  EXPECT_EQ((*sites)[2].offset, 0xau);
  EXPECT_EQ((*sites)[3].offset, 0xeu);
  EXPECT_EQ((*sites)[3].condition, 4);
  EXPECT_EQ((*sites)[3].address.raw(), kBase + 0xe);
}

TEST(ReturnSites, FollowTheColdPartAndComeBack) {
  Text text;
  text.put_branch(0x000, {0x0f, 0x85}, 0x800).put(0x006, code({0xc3})).name(0x000, "f");
  text.name(0x000, "alias_of_f").name(0x100, "other");
  text.put_branch(0x800, {0xe9}, 0x006).put(0x805, code({0xc3})).name(0x800, "f.cold");
  text.name(0x900, "end");

  for (const char* name : {"f", "alias_of_f"}) {
    const auto sites = return_sites(text, text.table(), text.symbol(name));
    ASSERT_TRUE(sites);
    ASSERT_EQ(sites->size(), 2u) << name;
    EXPECT_EQ((*sites)[0].offset, 6u);
    EXPECT_EQ((*sites)[1].offset, 0x805u);
  }
}

TEST(ReturnSites, AForeignColdPartIsAWayOut) {
  Text text;
  text.put_branch(0x000, {0xe9}, 0x800).name(0x000, "f").name(0x100, "g");
  text.put(0x800, code({0xc3})).name(0x800, "g.cold.3").name(0x900, "end");

  const auto sites = return_sites(text, text.table(), text.symbol("f"));

  ASSERT_TRUE(sites);
  EXPECT_EQ(sites->size(), 1u);
}

TEST(ReturnSites, AJumpToAReturnThunkIsAReturn) {
  Text text;
  text.put_branch(0x000, {0xe9}, 0x800)
      .put_branch(0x005, {0xe9}, 0x900)
      .put_branch(0x00a, {0xe9}, 0xa00)
      .name(0x000, "f")
      .name(0x100, "next");
  text.name(0x800, "__x86_return_thunk").name(0x900, "srso_alias_return_thunk");
  text.name(0xa00, "__x86_indirect_thunk_rax").name(0xb00, "end");

  const auto sites = return_sites(text, text.table(), text.symbol("f"));

  ASSERT_TRUE(sites);
  ASSERT_EQ(sites->size(), 3u);
  EXPECT_TRUE((*sites)[0].has_value);
  EXPECT_TRUE((*sites)[1].has_value);
  EXPECT_FALSE((*sites)[2].has_value);
}

TEST(ReturnSites, AreNoneForAFunctionThatNeverReturns) {
  Text text;
  text.put(0x000, code({0x0f, 0x0b})).name(0x000, "panics").name(0x010, "end");

  const auto sites = return_sites(text, text.table(), text.symbol("panics"));

  ASSERT_TRUE(sites);
  EXPECT_TRUE(sites->empty());
}

TEST(ReturnSites, RefuseTextThatDoesNotDecode) {
  Text text;
  text.put(0x000, code({0x90, 0x06, 0xc3})).name(0x000, "odd").name(0x010, "end");

  const auto sites = return_sites(text, text.table(), text.symbol("odd"));

  ASSERT_FALSE(sites);
  EXPECT_EQ(sites.error().code, ErrorCode::Unsupported);
}

}  // namespace
}  // namespace ringside::providers
