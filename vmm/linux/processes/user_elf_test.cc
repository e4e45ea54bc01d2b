#include "vmm/linux/processes/user_elf.h"

#include <gtest/gtest.h>

#include "vmm/linux/processes/user_fakes_for_tests.h"

namespace ringside::guest_linux {
namespace {

using fakes::SmallLibrary;

constexpr std::uint64_t kBase = 0x7f12'3456'7000;

class UserElfOf : public testing::Test {
 protected:
  std::optional<UserElf> elf(std::uint64_t base = kBase) {
    return UserElf::read(guest_, GuestVirt(base));
  }
  DynamicSymbols symbols(std::uint64_t base = kBase) {
    return DynamicSymbols::read(guest_, elf(base).value());
  }
  static std::string name(const DynamicSymbols& table, std::uint64_t distance) {
    const auto found = table.at(distance);
    if (!found) return "?";
    return std::string(found->name) + "+" + std::to_string(found->offset);
  }

  fakes::PagedGuest guest_;
};

const std::vector<SmallLibrary::Named> kThree = {
    {"open", 0x100, 0x20},
    {"close", 0x140, 0x10},
    {"table", 0x5800, 0x100, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT)}};

TEST_F(UserElfOf, SymbolsAreFoundByEitherHashAndEitherFormOfTheDynamicSection) {
  for (const bool gnu : {false, true}) {
    for (const bool relocated : {false, true}) {
      SmallLibrary library;
      library.gnu_hash = gnu;
      library.relocated = relocated;
      library.map(guest_, kBase, kThree);

      const DynamicSymbols table = symbols();

      EXPECT_TRUE(table.whole());
      EXPECT_EQ(table.count(), 3u);
      EXPECT_EQ(name(table, 0x100), "open+0");
      EXPECT_EQ(name(table, 0x11f), "open+31");
      EXPECT_EQ(name(table, 0x120), "?") << "between two symbols";
      EXPECT_EQ(name(table, 0x14f), "close+15");
      EXPECT_EQ(name(table, 0x5810), "table+16") << ".bss";
      EXPECT_EQ(name(table, 0xff), "?");
    }
  }
}

TEST_F(UserElfOf, AProgramThatIsNotMovedHasItsOwnAddresses) {
  SmallLibrary library;
  library.linked_at = 0x40'0000;
  library.map(guest_, 0x40'0000, kThree);

  EXPECT_EQ(elf(0x40'0000)->bias, 0u);
  EXPECT_EQ(elf(0x40'0000)->size, SmallLibrary::kSize);
  EXPECT_EQ(name(symbols(0x40'0000), 0x144), "close+4");
}

TEST_F(UserElfOf, OfNamesForOnePlaceTheLeastInternalIsTaken) {
  SmallLibrary().map(guest_, kBase,
                     {{"__read", 0x100, 0x20},
                      {"read", 0x100, 0x20, ELF64_ST_INFO(STB_WEAK, STT_FUNC)},
                      {"_read", 0x100, 0x20},
                      {"readable", 0x100, 0x20},
                      {"r", 0x100, 0x20, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT)}});

  EXPECT_EQ(name(symbols(), 0x104), "read+4");
}

TEST_F(UserElfOf, ASymbolInsideAnotherDoesNotHideWhatFollowsIt) {
  SmallLibrary().map(guest_, kBase, {{"outer", 0x100, 0x100}, {"inner", 0x120, 0x10}});

  EXPECT_EQ(name(symbols(), 0x125), "inner+5");
  EXPECT_EQ(name(symbols(), 0x140), "outer+64");
}

TEST_F(UserElfOf, WhatIsNoPlaceInTheImageIsLeftOut) {
  SmallLibrary().map(guest_, kBase,
                     {{"undefined", 0x100, 0x20, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), SHN_UNDEF},
                      {"version", 0, 0x20, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), SHN_ABS},
                      {"thread", 0x100, 0x20, ELF64_ST_INFO(STB_GLOBAL, STT_TLS)},
                      {"far", 0x9000'0000'0000, 0x20},
                      {"bad\nname", 0x100, 0x20},
                      {"", 0x100, 0x20}});

  EXPECT_EQ(symbols().count(), 0u);
}

TEST_F(UserElfOf, PagesThatAreNotInMemoryAreUnknownAndTheRestIsKnown) {
  std::vector<SmallLibrary::Named> many;
  for (std::uint64_t n = 0; n < 160; ++n) many.push_back({"f" + std::to_string(n), n * 0x10, 0x10});
  SmallLibrary().map(guest_, kBase, many);
  EXPECT_TRUE(symbols().whole());
  EXPECT_EQ(symbols().count(), 160u);

  guest_.remove_page(kBase + SmallLibrary::kSymbols);
  EXPECT_FALSE(symbols().whole());
  EXPECT_EQ(symbols().count(), 0u);

  SmallLibrary().map(guest_, kBase, many);
  guest_.remove_page(kBase + SmallLibrary::kStrings);
  EXPECT_FALSE(symbols().whole());
  EXPECT_EQ(symbols().count(), 0u) << "none has a name";

  SmallLibrary().map(guest_, kBase, many);
  guest_.remove_page(kBase + SmallLibrary::kDynamic);
  EXPECT_FALSE(symbols().whole()) << "where the tables are is unknown";
}

TEST_F(UserElfOf, WhatIsNoImageHasNothing) {
  EXPECT_FALSE(elf()) << "not mapped";
  SmallLibrary().map(guest_, kBase, kThree);
  guest_.put(kBase + 4, std::uint8_t{ELFCLASS32});
  EXPECT_FALSE(elf());
  SmallLibrary().map(guest_, kBase, kThree);
  guest_.put(kBase + offsetof(Elf64_Ehdr, e_phoff), std::uint64_t{0xffff'ffff'ffff'ff00});
  EXPECT_FALSE(elf());
  SmallLibrary().map(guest_, kBase, kThree);
  guest_.put(kBase + sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_memsz), UINT64_MAX);
  EXPECT_FALSE(elf());
}

TEST_F(UserElfOf, CountsAndPlacesThatLieEndEarly) {
  const auto dynamic = [](unsigned n) { return kBase + SmallLibrary::kDynamic + n * 16 + 8; };
  SmallLibrary library;
  for (const std::uint64_t lie : {std::uint64_t{0}, std::uint64_t{1}, kBase - 8, UINT64_MAX,
                                  kBase + SmallLibrary::kSize - 1, std::uint64_t{1} << 62}) {
    for (unsigned n = 0; n < 4; ++n) {
      library.map(guest_, kBase, kThree);
      guest_.put(dynamic(n), lie);
      EXPECT_LE(symbols().count(), std::size_t{1} << 18) << n;
    }
    for (unsigned n = 0; n < 8; ++n) {
      library.map(guest_, kBase, kThree);
      guest_.put(kBase + SmallLibrary::kHash + n * 4, static_cast<std::uint32_t>(lie));
      EXPECT_LE(symbols().count(), std::size_t{1} << 18) << n;
    }
  }
}

}  // namespace
}  // namespace ringside::guest_linux
