#include "vmm/linux/text/patched_sites.h"

#include <gtest/gtest.h>

#include "vmm/linux/fakes_for_tests.h"

namespace ringside::guest_linux {
namespace {

using fakes::kText;

constexpr std::uint64_t kSiteTable = 0xffff'ffff'8200'0000;

struct PatchedSites : testing::Test {
  fakes::SparseGuest guest;
  TextBounds bounds{&guest, {GuestVirt(kText), GuestVirt(kText + 0x1000)}};
  fakes::Bytes table;
  std::vector<Kernel::PatchedSite> sites;

  /// An s32 that names `target` relative to its own place.
  void add_relative(std::uint64_t target) {
    table.add(static_cast<std::uint32_t>(target - (kSiteTable + table.size())));
  }
  ImageView view() const { return {GuestVirt(kSiteTable), table.bytes()}; }
};

TEST_F(PatchedSites, JumpLabelsAreTwoOrFiveBytesByWhatStandsThere) {
  for (const std::uint64_t at : {0x10, 0x20, 0x30}) {
    add_relative(kText + at);
    add_relative(kText + at + 0x100);
    table.add(std::int64_t{0x402});  // the low bits are flags
  }
  guest.put(kText + 0x10, std::uint16_t{0x9066});  // xchg %ax,%ax
  guest.put(kText + 0x20, std::uint16_t{0x00e9});  // jmp rel32

  collect_jump_labels(view(), bounds, sites);

  ASSERT_EQ(sites.size(), 3u);
  EXPECT_EQ(sites[0].address.raw(), kText + 0x10);
  EXPECT_EQ(sites[0].length, 2);
  EXPECT_EQ(sites[1].length, 5);
  EXPECT_EQ(sites[2].length, 5) << "unreadable: the longer form";
  EXPECT_EQ(sites[0].what, "jump label");
  EXPECT_EQ(sites[1].target.raw(), kText + 0x120);
  EXPECT_EQ(sites[1].key.raw(), kSiteTable + 16 + 8 + 0x400);
}

TEST_F(PatchedSites, ConditionalStaticCallsAreSixBytes) {
  add_relative(kText + 0x40);
  table.add(std::int32_t{0});
  add_relative(kText + 0x50);
  table.add(std::int32_t{0x101});
  guest.put(kText + 0x40, std::uint16_t{0x840f});  // je rel32
  guest.put(kText + 0x50, std::uint16_t{0x1f0f});  // nopl

  collect_static_calls(view(), bounds, sites);

  ASSERT_EQ(sites.size(), 2u);
  EXPECT_EQ(sites[0].length, 6);
  EXPECT_EQ(sites[1].length, 5);
  EXPECT_EQ(sites[1].key.raw(), kSiteTable + 8 + 4 + 0x100);
}

TEST_F(PatchedSites, ExceptionEntriesNameTheirInstruction) {
  add_relative(kText + 0x60);
  add_relative(kText + 0x90);
  table.add(std::int32_t{0x00070003});

  collect_exceptions(view(), bounds, sites);

  ASSERT_EQ(sites.size(), 1u);
  EXPECT_EQ(sites[0].address.raw(), kText + 0x60);
  EXPECT_EQ(sites[0].length, 1);
  EXPECT_EQ(sites[0].fixup.raw(), kText + 0x90);
  EXPECT_EQ(sites[0].data, 0x00070003u);
}

TEST_F(PatchedSites, EntriesOutsideTextClearedOnesAndHalfOnesAreLeftOut) {
  add_relative(kText + 0x1000);  // just after the end
  table.add(std::int32_t{0});
  table.add(std::int64_t{0});  // the kernel leaves this of a site in init text
  add_relative(kText + 0x10);  // cut short

  collect_static_calls(view(), bounds, sites);

  EXPECT_TRUE(sites.empty());
}

TEST_F(PatchedSites, TrampolinesOfStaticCallsAreSites) {
  const std::array symbols = {
      Symbol{.address = GuestVirt(kText + 8), .name = "__SCT__cond_resched", .type = 'T'},
      Symbol{.address = GuestVirt(kText + 16), .name = "cond_resched", .type = 'T'}};

  collect_static_call_trampolines(symbols, bounds, sites);

  ASSERT_EQ(sites.size(), 1u);
  EXPECT_EQ(sites[0].address.raw(), kText + 8);
}

struct Parts : testing::Test {
  SymbolTable table;

  void seal(std::initializer_list<std::pair<std::uint64_t, std::string_view>> names) {
    std::vector<Symbol> symbols;
    for (const auto& [at, name] : names) {
      symbols.push_back(Symbol{.address = GuestVirt(kText + at), .name = name, .type = 'T'});
    }
    table.add_module({.name = "vmlinux", .text_base = GuestVirt(kText), .text_size = 0x1000},
                     std::move(symbols));
    table.seal();
  }
  bool is_none(const BoundedPart& part) {
    const auto range = find_part(table, part);
    return range && !*range;
  }
  std::string problem() {
    const auto ranges = forbidden_ranges(table);
    return ranges ? "none" : ranges.error().message;
  }
};

TEST_F(Parts, ForbiddenOnesAreInOrder) {
  seal({{0x10, "__noinstr_text_start"},
        {0x20, "__noinstr_text_end"},
        {0x30, "__entry_text_start"},
        {0x40, "entry_SYSCALL_64"},
        {0x50, "__entry_text_end"}});

  const auto ranges = forbidden_ranges(table);

  ASSERT_TRUE(ranges) << problem();
  ASSERT_EQ(ranges->size(), 2u);
  EXPECT_TRUE((*ranges)[0].contains(GuestVirt(kText + 0x1f)));
  EXPECT_FALSE((*ranges)[0].contains(GuestVirt(kText + 0x20)));
  EXPECT_EQ((*ranges)[1].begin.raw(), kText + 0x30);
}

TEST_F(Parts, OfWhichNothingShowsThatTheKernelHasThemAreNone) {
  seal({{0x10, "vfs_read"}});

  EXPECT_EQ(problem(), "none") << "noinstr text came in 5.8, static calls in 5.10";
  EXPECT_TRUE(is_none(kStaticCalls));
}

TEST_F(Parts, ThatTheKernelMustHaveAreMissedByName) {
  seal({{0x10, "asm_exc_int3"}});

  EXPECT_NE(problem().find("has noinstr text, but its symbols do not say where "
                           "(__noinstr_text_start, __noinstr_text_end)"),
            std::string::npos)
      << problem();
}

TEST_F(Parts, HalfAPairAndAReversedOneAreErrors) {
  seal({{0x10, "__init_begin"}, {0x30, "__stop___ex_table"}, {0x40, "__start___ex_table"}});

  EXPECT_NE(problem().find("init memory"), std::string::npos) << problem();
  EXPECT_FALSE(find_part(table, kExceptionTable));
}

TEST_F(Parts, EmptyOnesAreNone) {
  seal({{0x10, "__start___jump_table"},
        {0x10, "__stop___jump_table"},
        {0x20, "arch_jump_label_transform"}});

  EXPECT_TRUE(is_none(kJumpLabels));
}

}  // namespace
}  // namespace ringside::guest_linux
