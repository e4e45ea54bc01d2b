#include "vmm/linux/processes/file_pieces.h"

#include <gtest/gtest.h>

#include <random>

#include "vmm/linux/processes/eh_frame_fakes_for_tests.h"
#include "vmm/linux/processes/elf_file_for_tests.h"

namespace ringside::guest_linux {
namespace {

using fakes::EhFrameWriter, fakes::ElfFile, fakes::RuleWriter;

constexpr std::uint64_t kPiecesAt = 0x1000, kTableAt = 0x1800;  // offsets in the file

/// A stripped file in a guest's page cache: text, and its unwind table.
class FilePiecesTest : public testing::Test {
 protected:
  FilePiecesTest() {
    const auto at = [](std::uint64_t offset) { return ElfFile::kLinkedAt + offset; };
    const auto table = EhFrameWriter::write(
        at(kTableAt), {{at(kPiecesAt), 0x20, {}},
                       {at(kPiecesAt + 0x40), 0x10, RuleWriter().def_cfa_offset(16)},
                       {at(kPiecesAt + 0x60), 8, RuleWriter().def_cfa(6, 16)}});
    std::uint64_t offset = kTableAt;
    for (const std::byte one : table.bytes()) file_.byte(offset++) = one;
    file_.unwind_index = kTableAt;
  }
  std::optional<FilePiece> piece_at(std::uint64_t offset) {
    bytes_ = file_.encode();
    return piece_in(bytes_, offset);
  }
  static std::optional<FilePiece> piece_in(std::span<const std::byte> bytes, std::uint64_t offset) {
    fakes::PagedGuest guest;
    fakes::PageCacheWriter cache(guest);
    const PageCacheLayout layout = fakes::page_cache_layout();
    const GuestVirt inode(cache.whole(bytes));
    const auto file = FilePages::of_inode(cache.memory(), guest, layout, inode);
    const auto pieces = file ? FilePieces::read(*file) : std::nullopt;
    return pieces ? pieces->at(*file, offset) : std::nullopt;
  }

  ElfFile file_{kPiecesAt, 0x1000};
  std::vector<std::byte> bytes_;
};

TEST_F(FilePiecesTest, AreThoseOfTheUnwindTable) {
  const auto function = piece_at(kPiecesAt + 0x1f);
  ASSERT_TRUE(function);
  EXPECT_EQ(function->offset, kPiecesAt);
  EXPECT_EQ(function->size, 0x20u);
  EXPECT_TRUE(function->may_be_called);
  const auto part = piece_at(kPiecesAt + 0x40);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->offset, kPiecesAt + 0x40);
  EXPECT_FALSE(part->may_be_called) << "a word lies above the return address";
  ASSERT_TRUE(piece_at(kPiecesAt + 0x60));
  EXPECT_FALSE(piece_at(kPiecesAt + 0x60)->may_be_called) << "it has a frame pointer";
}

TEST_F(FilePiecesTest, NothingIsKnownWhereNoTableSays) {
  EXPECT_FALSE(piece_at(kPiecesAt + 0x20));
  EXPECT_FALSE(piece_at(0)) << "no text";
  file_.unwind_index = 0;
  EXPECT_FALSE(piece_at(kPiecesAt));
}

TEST_F(FilePiecesTest, ABentTableDoesNoHarm) {
  std::mt19937_64 random(1);
  const std::vector<std::byte> whole = file_.encode();
  std::size_t known = 0;
  for (unsigned round = 0; round < 300; ++round) {
    auto bent = whole;
    for (unsigned n = 0; n < 4; ++n) {
      bent[kTableAt + random() % 0xc0] = static_cast<std::byte>(random());
    }
    known += piece_in(bent, kPiecesAt + random() % 0x70).has_value() ? 1U : 0;
  }
  EXPECT_GT(known, 0u);
}

}  // namespace
}  // namespace ringside::guest_linux
