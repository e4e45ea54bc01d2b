#include <gtest/gtest.h>

#include "vmm/linux/kernel.h"

namespace ringside::guest_linux {
namespace {

constexpr std::uint64_t kText = 0xffff'ffff'8100'0000;
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

}  // namespace
}  // namespace ringside::guest_linux
