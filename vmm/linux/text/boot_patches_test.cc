#include "vmm/linux/text/boot_patches.h"

#include <gtest/gtest.h>

#include <memory>

#include "vmm/linux/text/small_elf_for_tests.h"
#include "vmm/linux/types/btf.h"

namespace ringside::guest_linux {
namespace {

using fakes::Bytes;
using fakes::kText;
using fakes::SmallElf;

constexpr std::uint64_t kPatchTable = kText + 0x10'0000;

/// An entry that lies at `at` and points to `to`.
std::int32_t relative(std::uint64_t at, std::uint64_t to) {
  return static_cast<std::int32_t>(to - at);
}

class BootPatches : public testing::Test {
 protected:
  void SetUp() override {
    // As in Linux 6.12: 14 bytes, packed.
    fakes::BtfWriter btf;
    const auto s32 = btf.integer("s32", 4, true), u32 = btf.integer("u32", 4, false);
    const auto u8 = btf.integer("u8", 1, false);
    btf.structure("alt_instr", 14,
                  {{"instr_offset", s32, 0},
                   {"repl_offset", s32, 32},
                   {"ft_flags", u32, 64},
                   {"instrlen", u8, 96},
                   {"replacementlen", u8, 104}});
    ASSERT_TRUE(Btf::read(btf.blob(), nullptr, types_));
  }
  static std::vector<std::byte> alternatives(std::uint64_t to, std::uint8_t length) {
    Bytes table;
    table.add(relative(kPatchTable, to)).add(0).add(0).add(length).add(std::uint8_t{9});
    return table.bytes();
  }
  std::optional<std::vector<Kernel::PatchedSite>> find() {
    bytes_ = elf_.write({});
    const auto image = vmm::ElfFile::parse(bytes_);
    EXPECT_TRUE(image);
    return find_boot_patches(*image, types_);
  }

  TypeGraph types_;
  SmallElf elf_;
  std::vector<std::byte> bytes_;
};

TEST_F(BootPatches, ComeFromEveryTableSorted) {
  elf_.named_section(".altinstructions", kPatchTable, alternatives(kText + 0x50, 3));
  Bytes thunks, constants, paravirt;
  thunks.add(relative(kPatchTable + 0x100, kText + 0x40))
      .add(relative(kPatchTable + 0x104, kText + 0x20));
  elf_.named_section(".return_sites", kPatchTable + 0x100, thunks.bytes());
  constants.add(relative(kPatchTable + 0x200, kText + 0x30));
  elf_.named_section("runtime_ptr_dentry_hashtable", kPatchTable + 0x200, constants.bytes());
  paravirt.add(kText + 0x10).add(std::uint8_t{4}).add(std::uint8_t{7});
  paravirt.add(std::uint32_t{0}).add(std::uint16_t{0});
  elf_.named_section(".parainstructions", kPatchTable + 0x300, paravirt.bytes());

  const auto sites = find();

  ASSERT_TRUE(sites);
  ASSERT_EQ(sites->size(), 5u);
  const std::array<std::pair<std::uint64_t, unsigned>, 5> expected{
      {{0x10, 7}, {0x20, 5}, {0x30, 15}, {0x40, 5}, {0x50, 3}}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ((*sites)[i].address.raw(), kText + expected[i].first);
    EXPECT_EQ((*sites)[i].length, expected[i].second);
  }
}

TEST_F(BootPatches, AreUnknownWithoutATableOfAlternatives) {
  EXPECT_FALSE(find());
}

TEST_F(BootPatches, AreUnknownWhereTheTypesDoNotSayHowToReadIt) {
  elf_.named_section(".altinstructions", kPatchTable, alternatives(kText, 3));
  types_ = TypeGraph();

  EXPECT_FALSE(find());
}

TEST_F(BootPatches, OfATableThatIsCutShortAreThoseThatAreWhole) {
  auto table = alternatives(kText + 0x50, 3);
  table.resize(table.size() + 13);
  elf_.named_section(".altinstructions", kPatchTable, table);

  const auto sites = find();

  ASSERT_TRUE(sites);
  EXPECT_EQ(sites->size(), 1u);
}

}  // namespace
}  // namespace ringside::guest_linux
