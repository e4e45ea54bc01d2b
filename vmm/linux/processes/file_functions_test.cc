#include "vmm/linux/processes/file_functions.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "vmm/linux/processes/elf_file_for_tests.h"

namespace ringside::guest_linux {
namespace {

using fakes::ElfFile;

constexpr std::uint64_t kCodeAt = 0x1000;

/// A file that a guest has in its page cache.
class Cached {
 public:
  explicit Cached(std::span<const std::byte> bytes) : inode_(cache_.whole(bytes)) {}
  FileFunctions functions() {
    const auto pages = FilePages::of_inode(cache_.memory(), guest_, layout_, GuestVirt(inode_));
    return pages ? FileFunctions::read(*pages) : FileFunctions();
  }
  void drop_page(std::uint64_t index) { guest_.put(cache_.slot(inode_, index), std::uint64_t{0}); }

 private:
  fakes::PagedGuest guest_;
  fakes::PageCacheWriter cache_{guest_};
  const PageCacheLayout layout_ = fakes::page_cache_layout();
  const std::uint64_t inode_;
};

TEST(FileFunctions, AreThoseOfTheSymbolTableByOffset) {
  ElfFile file(kCodeAt, 0x2000);
  file.add_function("second", kCodeAt + 0x40, 0x10);
  file.add_function("first", kCodeAt, 0x20);
  file.add_function("data", kCodeAt + 0x80, 8, STT_OBJECT);
  file.add_function("far", 0x100000, 8);
  const FileFunctions found = file.functions();
  EXPECT_EQ(found.source(), FileFunctions::Source::Symbols);
  EXPECT_TRUE(found.is_whole());
  ASSERT_EQ(found.all().size(), 2u);
  EXPECT_EQ(found.all()[0].name, "first");
  EXPECT_EQ(found.all()[0].offset, kCodeAt);
  EXPECT_EQ(found.all()[0].size, 0x20u);
  EXPECT_EQ(found.all()[1].name, "second");
  EXPECT_TRUE(found.is_text(kCodeAt) && found.is_text(kCodeAt + 0x1fff));
  EXPECT_FALSE(found.is_text(kCodeAt - 1) || found.is_text(kCodeAt + 0x2000));
}

TEST(FileFunctions, AProgramThatIsLinkedForOnePlaceTellsAddresses) {
  ElfFile file(kCodeAt, 0x2000);
  EXPECT_FALSE(file.functions().fixed_address(kCodeAt)) << "it is mapped anywhere";
  file.file_type = ET_EXEC;
  const FileFunctions fixed = file.functions();
  EXPECT_EQ(fixed.fixed_address(kCodeAt + 8), GuestVirt(ElfFile::kLinkedAt + kCodeAt + 8));
  EXPECT_FALSE(fixed.fixed_address(kCodeAt + 0x2000)) << "it is no text";
}

TEST(FileFunctions, NamesStayWhereTheyAreWhenTheTableMoves) {
  ElfFile file(kCodeAt, 0x1000);
  file.add_function("a", kCodeAt, 1);
  FileFunctions found = file.functions();
  const FileFunctions moved = std::move(found);
  ASSERT_EQ(moved.all().size(), 1u);
  EXPECT_EQ(moved.all()[0].name, "a");
}

TEST(FileFunctions, AreOfTheDynamicTableWhereThereIsNoOther) {
  ElfFile file(kCodeAt, 0x1000);
  file.table_type = SHT_DYNSYM;
  file.add_function("exported", kCodeAt, 1);
  const FileFunctions found = file.functions();
  EXPECT_EQ(found.source(), FileFunctions::Source::DynamicSymbols);
  EXPECT_EQ(found.all().size(), 1u);
}

TEST(FileFunctions, NamesThatDoNotPrintAreLeftOut) {
  ElfFile file(kCodeAt, 0x1000);
  file.add_function("", kCodeAt, 1);
  file.add_function("a b", kCodeAt, 1);
  file.add_function("a:b", kCodeAt, 1);
  file.add_function("\x1b[2J", kCodeAt, 1);
  file.add_function("std::swap<int>", kCodeAt, 1);
  file.add_function("plain", kCodeAt, 1);
  const FileFunctions found = file.functions();
  ASSERT_EQ(found.all().size(), 1u);
  EXPECT_EQ(found.all()[0].name, "plain");
}

TEST(FileFunctions, NoneWhereTheTableIsNotInMemory) {
  ElfFile file(kCodeAt, 0x1000);
  file.add_function("a", kCodeAt, 1);
  Cached cached(file.encode());
  EXPECT_EQ(cached.functions().all().size(), 1u);
  cached.drop_page(2);
  EXPECT_TRUE(cached.functions().all().empty());
  EXPECT_TRUE(cached.functions().is_text(kCodeAt));
  cached.drop_page(0);
  EXPECT_FALSE(cached.functions().is_text(kCodeAt));
}

TEST(FileFunctions, ABentFileDoesNoHarm) {
  ElfFile file(kCodeAt, 0x1000);
  for (unsigned n = 0; n < 20; ++n) file.add_function("f" + std::to_string(n), kCodeAt + n, 1);
  const auto whole = file.encode();
  std::mt19937_64 random(1);
  for (unsigned round = 0; round < 2000; ++round) {
    auto bent = whole;
    for (unsigned n = 0; n < 1 + round % 8; ++n) {
      // Headers and tables alone decide.
      const std::uint64_t at = random() % (bent.size() - 0x1000);
      bent[at < kCodeAt ? at % 120 : at + 0x1000] = static_cast<std::byte>(random());
    }
    const FileFunctions functions = Cached(bent).functions();
    for (const FileFunction& each : functions.all()) {
      EXPECT_FALSE(each.name.empty());
      EXPECT_LT(each.offset, bent.size());
    }
  }
}

}  // namespace
}  // namespace ringside::guest_linux
