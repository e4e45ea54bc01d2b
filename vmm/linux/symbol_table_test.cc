#include <gtest/gtest.h>

#include "vmm/linux/fakes_for_tests.h"
#include "vmm/linux/kernel.h"

namespace ringside::guest_linux {
namespace {

using fakes::kText;

constexpr std::uint64_t kLoop = 0xffff'ffff'c000'0000;

Symbol text(std::uint64_t address, std::string_view name) {
  return {.address = GuestVirt(address), .name = name, .type = 't'};
}

SymbolTable table_with_a_module() {
  SymbolTable table;
  table.add_module({.name = "vmlinux", .text_base = GuestVirt(kText), .text_size = 0x1000},
                   {{.address = GuestVirt(0x1fb80), .name = "current_task", .type = 'A'},
                    text(kText, "_stext"),
                    text(kText, "alias"),
                    text(kText + 0x10, "__pfx_read"),
                    text(kText + 0x20, "read"),
                    text(kText + 0x100, "cleanup"),
                    text(kText + 0xf00, "last")});
  table.add_module({.name = "loop", .text_base = GuestVirt(kLoop), .text_size = 0x100},
                   {text(kLoop + 0x40, "lo_ioctl"),
                    text(kLoop, "cleanup"),
                    {.address = GuestVirt(kLoop + 0x5000), .name = "ops", .type = 'd'}});
  table.seal();
  return table;
}

TEST(SymbolTable, SortsByAddressAndLeavesPaddingOut) {
  const SymbolTable table = table_with_a_module();

  const auto symbols = table.symbols();
  EXPECT_TRUE(std::is_sorted(symbols.begin(), symbols.end(),
                             [](const auto& a, const auto& b) { return a.address < b.address; }));
  EXPECT_EQ(table.find("__pfx_read"), nullptr);
  EXPECT_EQ(symbols.size(), 9u);
}

TEST(SymbolTable, SizesEndAtTheNextSymbolThePaddingOrTheTextsEnd) {
  const SymbolTable table = table_with_a_module();

  EXPECT_EQ(table.find("_stext")->size, 0x10u) << "padding in front of read is not _stext's";
  EXPECT_EQ(table.find("alias")->size, 0x10u) << "aliases have one size";
  EXPECT_EQ(table.find("read")->size, 0xe0u);
  EXPECT_EQ(table.find("last")->size, 0x100u) << "vmlinux's text ends at 0x1000";
  EXPECT_EQ(table.find("lo_ioctl")->size, 0xc0u) << "its text's end, not `ops`";
  EXPECT_EQ(table.find("ops")->size, 0u);
  EXPECT_EQ(table.find("current_task")->size, 0u);
}

TEST(SymbolTable, FindsVmlinuxFirstUnlessAModuleIsNamed) {
  const SymbolTable table = table_with_a_module();

  EXPECT_EQ(table.find("cleanup")->address.raw(), kText + 0x100);
  EXPECT_EQ(table.find("cleanup", "loop")->address.raw(), kLoop);
  EXPECT_EQ(table.find("read", "loop"), nullptr);
  EXPECT_EQ(table.find("nosuch"), nullptr);
}

TEST(SymbolTable, DescribesCodeAddressesAsDtraceDoes) {
  const SymbolTable table = table_with_a_module();

  EXPECT_EQ(table.describe(GuestVirt(kText + 0x20)), "vmlinux`read");
  EXPECT_EQ(table.describe(GuestVirt(kText + 0x2a)), "vmlinux`read+0xa");
  EXPECT_EQ(table.describe(GuestVirt(kText)), "vmlinux`_stext");
  EXPECT_EQ(table.describe(GuestVirt(kLoop + 0x41)), "loop`lo_ioctl+0x1");
  EXPECT_EQ(table.describe(GuestVirt(kText + 0x1000)), "0xffffffff81001000");
  EXPECT_EQ(table.describe(GuestVirt(0x1fb80)), "0x1fb80") << "a per-cpu offset is no address";
}

TEST(SymbolTable, ShortInternedNamesStayWhereTheyAre) {
  SymbolTable table;
  const std::string_view first = table.intern("a");
  for (int i = 0; i < 1000; ++i) table.intern("b");

  EXPECT_EQ(first, "a");
}

TEST(SymbolTable, AnEmptyTableFindsNothing) {
  const SymbolTable table;

  EXPECT_EQ(table.find("x"), nullptr);
  EXPECT_EQ(table.at(GuestVirt(kText)), nullptr);
}

TEST(SymbolTable, TenThousandSymbolsOfOneNameAreNoTrouble) {
  SymbolTable table;
  std::vector<Symbol> symbols;
  for (std::uint64_t i = 0; i < 10'000; ++i) symbols.push_back(text(kText + i, "__func__.0"));

  table.add_module({.name = "vmlinux", .text_base = GuestVirt(kText), .text_size = 20'000},
                   std::move(symbols));
  table.seal();

  EXPECT_EQ(table.find("__func__.0")->address.raw(), kText);
}

constexpr std::uint64_t kLate = 0xffff'ffff'c080'0000;
using Accept = SymbolTable::Accept;

/// Two functions, padding and the text's end, from `base` on.
std::vector<Symbol> late_symbols(std::uint64_t base) {
  return {text(base + 0x40, "second"), text(base, "first"), text(base + 0x30, "__pfx_second")};
}
Module late_module(std::uint64_t base) {
  return {.name = "late", .text_base = GuestVirt(base), .text_size = 0x100};
}

TEST(SymbolTable, AModuleThatComesLaterIsFoundAndMovesNoOther) {
  SymbolTable table = table_with_a_module();
  const Symbol* const before = table.find("read");
  const std::size_t count = table.symbols().size();

  const auto late = table.put_late(late_module(kLate), late_symbols(kLate), Accept::Any);

  ASSERT_TRUE(late);
  EXPECT_FALSE(late->before);
  EXPECT_EQ(table.modules()[late->module].name, "late");
  EXPECT_EQ(table.symbols().size(), count);
  EXPECT_EQ(table.find("read"), before);
  ASSERT_EQ(table.late(late->module).size(), 2u);
  EXPECT_EQ(table.late(late->module)[0].size, 0x30u) << "up to the padding";
  EXPECT_EQ(table.late(late->module)[1].size, 0xc0u) << "up to the text's end";
  EXPECT_EQ(table.find("second")->address.raw(), kLate + 0x40);
  EXPECT_EQ(table.find("second", "late")->address.raw(), kLate + 0x40);
  EXPECT_EQ(table.find("second", "loop"), nullptr);
  EXPECT_EQ(table.describe(GuestVirt(kLate + 0x44)), "late`second+0x4");
  EXPECT_EQ(table.all_at(GuestVirt(kLate)).size(), 1u);
  EXPECT_EQ(table.all_at(GuestVirt(kText)).size(), 2u) << "_stext and alias";
}

TEST(SymbolTable, AModuleThatComesAgainKeepsItsIndexAndItsSymbols) {
  SymbolTable table = table_with_a_module();
  const auto first = table.put_late(late_module(kLate), late_symbols(kLate), Accept::Any);
  ASSERT_TRUE(first);
  const Symbol* const second = table.find("second");

  for (std::uint64_t round = 1; round <= 20; ++round) {
    const std::uint64_t base = kLate + round * 0x1000;
    const auto again = table.put_late(late_module(base), late_symbols(base), Accept::KnownOnly);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->module, first->module);
    ASSERT_TRUE(again->before);
    EXPECT_EQ(again->before->text_base.raw(), base - 0x1000);
    EXPECT_EQ(second->address.raw(), base + 0x40);
    EXPECT_EQ(table.at(GuestVirt(base + 0x41)), second);
    EXPECT_EQ(table.at(GuestVirt(base - 0x1000)), nullptr) << "it is not there any more";
  }
  EXPECT_EQ(table.modules().size(), 3u);
}

TEST(SymbolTable, AnotherBuildOfAModuleIsAnotherModule) {
  SymbolTable table = table_with_a_module();
  const auto first = table.put_late(late_module(kLate), late_symbols(kLate), Accept::Any);
  auto other = late_symbols(kLate);
  other[0].address = GuestVirt(kLate + 0x50);

  EXPECT_FALSE(table.put_late(late_module(kLate), other, Accept::KnownOnly));
  EXPECT_EQ(table.modules().size(), 3u);
  const auto second = table.put_late(late_module(kLate), other, Accept::Any);

  ASSERT_TRUE(second);
  EXPECT_NE(second->module, first->module);
  EXPECT_EQ(table.find("second", "late")->address.raw(), kLate + 0x50) << "the newer one";
}

TEST(SymbolTable, AModuleThatComesWhereAnotherOneWasTakesItsPlace) {
  SymbolTable table = table_with_a_module();
  const auto late = table.put_late(late_module(kLoop), late_symbols(kLoop), Accept::Any);

  ASSERT_TRUE(late);
  EXPECT_EQ(table.describe(GuestVirt(kLoop + 0x40)), "late`second");
  EXPECT_EQ(table.describe(GuestVirt(kLoop + 0x5000)), "loop`ops");
}

}  // namespace
}  // namespace ringside::guest_linux
