#include "vmm/linux/processes/page_cache.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "vmm/linux/processes/page_cache_fakes_for_tests.h"
#include "vmm/linux/types/btf.h"

namespace ringside::guest_linux {
namespace {

using fakes::PageCacheWriter;

constexpr std::uint64_t kPage = 4096;

class PageCache : public testing::Test {
 protected:
  FilePages pages(std::uint64_t inode) {
    return *FilePages::of_inode(write_.memory(), guest_, layout_, GuestVirt(inode));
  }
  std::optional<std::uint64_t> frame(std::uint64_t inode, std::uint64_t index) {
    const auto found = pages(inode).frame(index);
    return found ? std::optional(found->raw() / kPage) : std::nullopt;
  }

  fakes::PagedGuest guest_;
  PageCacheWriter write_{guest_};
  const PageCacheLayout layout_ = fakes::page_cache_layout();
};

TEST_F(PageCache, APageIsFoundByItsIndexThroughAllLevels) {
  const std::uint64_t file = write_.inode(5000 * kPage);
  const std::uint64_t first = write_.put(file, 0), far = write_.put(file, 4999);

  EXPECT_EQ(frame(file, 0), first);
  EXPECT_EQ(frame(file, 4999), far);
  EXPECT_EQ(frame(file, 1), std::nullopt) << "an empty slot";
  EXPECT_EQ(frame(file, 700), std::nullopt) << "an empty node";
  EXPECT_EQ(frame(file, 5000), std::nullopt) << "beyond the file's end";
  EXPECT_EQ(frame(file, UINT64_MAX), std::nullopt);
}

TEST_F(PageCache, TheOnlyPageOfAFileMayStandInTheRootItself) {
  const std::uint64_t file = write_.inode(2 * kPage);
  const std::uint64_t number = write_.put(file, 0);
  const auto mapping = *load<std::uint64_t>(guest_, GuestVirt(file));
  guest_.put(mapping + 8, PageCacheWriter::folio_of(number));

  EXPECT_EQ(frame(file, 0), number);
  EXPECT_EQ(frame(file, 1), std::nullopt);
}

TEST_F(PageCache, EachPageOfALargeFolioHasAFrameOfItsOwn) {
  const std::uint64_t file = write_.inode(256 * kPage);
  const std::uint64_t four = write_.put(file, 8, 2);

  for (std::uint64_t n = 0; n < 4; ++n) EXPECT_EQ(frame(file, 8 + n), four + n) << n;
  EXPECT_EQ(frame(file, 7), std::nullopt);
  EXPECT_EQ(frame(file, 12), std::nullopt);
}

TEST_F(PageCache, AFolioOfAWholeNodeStandsOneLevelHigher) {
  PageCacheWriter write(guest_, 256);
  const std::uint64_t file = write.inode(256 * kPage);
  const std::uint64_t many = write.put(file, 128, 7);
  const auto found = FilePages::of_inode(write.memory(), guest_, layout_, GuestVirt(file));

  for (const std::uint64_t n : {0, 1, 63, 64, 127}) {
    EXPECT_EQ(found->frame(128 + n), GuestPhys((many + n) * kPage)) << n;
  }
  EXPECT_EQ(found->frame(127), std::nullopt);
}

TEST_F(PageCache, APageThatIsNotReadYetOrIsAnotherFilesIsNone) {
  const std::uint64_t file = write_.inode(8 * kPage);
  const std::uint64_t folio = PageCacheWriter::folio_of(write_.put(file, 3));

  guest_.put(folio, std::uint64_t{1});  // locked: the disk is read
  EXPECT_EQ(frame(file, 3), std::nullopt);
  guest_.put(folio, std::uint64_t{4});
  guest_.put(folio + 32, std::uint64_t{4});  // its index
  EXPECT_EQ(frame(file, 3), std::nullopt);
  guest_.put(folio + 32, std::uint64_t{3});
  EXPECT_TRUE(frame(file, 3));
  guest_.put(folio + 24, std::uint64_t{0});  // its mapping: it was truncated
  EXPECT_EQ(frame(file, 3), std::nullopt);
}

TEST_F(PageCache, ValuesAndMarksAreNoPages) {
  const std::uint64_t file = write_.inode(8 * kPage);
  write_.put(file, 3);
  const std::uint64_t folio = PageCacheWriter::folio_of(1);
  const std::uint64_t slot = write_.slot(file, 3);

  for (const std::uint64_t entry :
       {std::uint64_t{0x123} << 1 | 1,  // what is left of a page that was reclaimed
        std::uint64_t{0x402},           // XA_RETRY_ENTRY
        std::uint64_t{3} << 2 | 2,      // a sibling of itself
        std::uint64_t{60} << 2 | 2,     // a sibling of a later slot
        std::uint64_t{1} << 2 | 2,      // a sibling of an empty slot
        folio + 8,                      // not on the array of struct page
        fakes::kVmemmap + 5000 * 64,    // no RAM
        fakes::kVmemmap - 64, std::uint64_t{0xffff'ffff'ffff'fffc}}) {
    guest_.put(slot, entry);
    EXPECT_EQ(frame(file, 3), std::nullopt) << std::hex << entry;
  }
}

TEST_F(PageCache, NodesThatDoNotGetSmallerEndTheWalk) {
  const std::uint64_t file = write_.inode(8 * kPage);
  write_.put(file, 3);
  const auto mapping = *load<std::uint64_t>(guest_, GuestVirt(file));
  const auto root = *load<std::uint64_t>(guest_, GuestVirt(mapping + 8));

  for (const std::uint8_t shift : {12, 13, 200, 255}) {
    guest_.put(write_.slot(file, 3), root);
    guest_.put(root - 2, shift);
    EXPECT_EQ(frame(file, 3), std::nullopt) << unsigned{shift};
  }
}

TEST_F(PageCache, BytesAreReadAcrossPagesUpToTheFirstThatIsAbsent) {
  std::string text(3 * kPage - 100, 'a');
  text.replace(kPage - 2, 4, "wxyz");
  const std::uint64_t file = write_.whole(std::as_bytes(std::span(text)));
  std::array<char, 4> found{};
  const auto read = [&](std::uint64_t offset, std::span<char> out) {
    return pages(file).read(offset, std::as_writable_bytes(out));
  };

  EXPECT_EQ(read(kPage - 2, found), 4u);
  EXPECT_EQ(std::string_view(found.data(), 4), "wxyz");
  std::string all(4 * kPage, ' ');
  EXPECT_EQ(read(0, all), text.size()) << "the file ends there";
  EXPECT_EQ(all.substr(0, text.size()), text);
  EXPECT_EQ(read(text.size(), found), 0u);
  EXPECT_EQ(read(UINT64_MAX - 1, found), 0u);
  guest_.put(write_.slot(file, 1), std::uint64_t{0});
  EXPECT_EQ(read(kPage - 2, found), 2u);
}

TEST_F(PageCache, AFileIsKnownByItsInode) {
  fakes::ProcessWriter process(guest_);
  const std::uint64_t inode = write_.inode(kPage), file = process.file("lib.so");
  write_.open(file, inode);

  const auto found = FilePages::of_file(write_.memory(), guest_, layout_, GuestVirt(file));

  ASSERT_TRUE(found);
  EXPECT_EQ(found->inode(), GuestVirt(inode));
  EXPECT_EQ(found->identity(), (FileIdentity{inode, 101, kPage, 1700000000, 0}));
  guest_.put(inode + 24, std::uint64_t{1700000001});  // somebody wrote to it
  EXPECT_NE(FilePages::of_file(write_.memory(), guest_, layout_, GuestVirt(file))->identity(),
            found->identity());
  EXPECT_FALSE(FilePages::of_file(write_.memory(), guest_, layout_, GuestVirt(0x1234)));
}

TEST_F(PageCache, TellsWhetherAProcessHasAPageMapped) {
  const std::uint64_t file = write_.inode(8 * kPage);
  const std::uint64_t folio = PageCacheWriter::folio_of(write_.put(file, 4, 1));
  guest_.put(folio + 48, std::int32_t{-1});
  guest_.put(folio + 64 + 48, std::int32_t{0});

  EXPECT_FALSE(pages(file).is_mapped(4));
  EXPECT_TRUE(pages(file).is_mapped(5)) << "the second page of the folio";
  EXPECT_FALSE(pages(file).is_mapped(6)) << "there is none";
}

TEST(PageCacheLayouts, AreFoundInTheKernelsTypes) {
  SymbolTable symbols;
  symbols.seal();
  TypeGraph without, types;
  ASSERT_TRUE(Btf::read(fakes::process_types().blob(), nullptr, without));
  EXPECT_FALSE(PageCacheLayout::from(without, symbols));
  fakes::BtfWriter whole;
  fakes::add_page_cache_types(whole);
  const std::uint32_t word = whole.integer("unsigned long", 8, false);
  whole.structure("file", 0x100, {{"f_inode", word, 0x80}});
  ASSERT_TRUE(Btf::read(whole.blob(), nullptr, types));

  const auto layout = PageCacheLayout::from(types, symbols);

  ASSERT_TRUE(layout);
  const PageCacheLayout wanted = fakes::page_cache_layout();
  EXPECT_EQ(layout->file_inode, 0x10u);
  EXPECT_EQ(layout->inode_size.offset, 16u);
  EXPECT_EQ(layout->inode_changed->offset, 24u);
  EXPECT_EQ(layout->inode_changed_part->bytes, 4u);
  EXPECT_EQ(layout->mapping_pages, wanted.mapping_pages);
  EXPECT_EQ(layout->node_slot_bits, 6u);
  EXPECT_EQ(layout->node_slots, 16u);
  EXPECT_EQ(layout->folio_mapping, 24u);
  EXPECT_EQ(layout->folio_index, 32u);
  EXPECT_EQ(layout->pages.page_bytes, 64u);
  EXPECT_EQ(layout->page_mapped, 48u);
  EXPECT_EQ(layout->is_up_to_date, 4u);
  EXPECT_FALSE(layout->pages.variable);
}

}  // namespace
}  // namespace ringside::guest_linux
