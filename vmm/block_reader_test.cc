#include "vmm/block_reader.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace ringside::vmm {
namespace {

constexpr std::uint64_t kBlocksBase = 0xffff'ffff'8100'0000;

/// Memory from kBlocksBase on, each byte its offset's lowest; counts what it is asked.
struct CountedMemory final : GuestReader {
  explicit CountedMemory(std::size_t size) : bytes(size) {
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i);
  }
  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
    ++reads;
    const std::uint64_t offset = at.raw() - kBlocksBase;
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (offset + i >= bytes.size()) {
        return Unexpected<Fault>(Fault{FaultKind::BadAddress, 0, at.raw() + i});
      }
      out[i] = bytes[offset + i];
    }
    return {};
  }
  std::vector<std::byte> bytes;
  mutable unsigned reads = 0;
};

std::byte byte_at(const GuestReader& reader, std::uint64_t offset) {
  return load<std::byte>(reader, GuestVirt(kBlocksBase + offset)).value_or(std::byte{0xee});
}

TEST(BlockReader, ReadsABlockOnce) {
  CountedMemory memory(2 * BlockReader::kBlock);
  const BlockReader reader(memory);

  for (std::uint64_t at = 0; at < BlockReader::kBlock; at += 100) {
    EXPECT_EQ(byte_at(reader, at), static_cast<std::byte>(at));
  }
  EXPECT_EQ(memory.reads, 1u);
  EXPECT_EQ(byte_at(reader, BlockReader::kBlock + 3), std::byte{3});
  EXPECT_EQ(memory.reads, 2u);
}

TEST(BlockReader, ReadsAcrossTwoBlocks) {
  CountedMemory memory(2 * BlockReader::kBlock);
  const BlockReader reader(memory);
  std::array<std::byte, 4> out{};

  ASSERT_TRUE(reader.read(GuestVirt(kBlocksBase + BlockReader::kBlock - 2), out));

  EXPECT_EQ(out, (std::array{std::byte{0xfe}, std::byte{0xff}, std::byte{0}, std::byte{1}}));
}

TEST(BlockReader, ReadsThePagesOnceThatABlockHas) {
  CountedMemory memory(3 * 4096);
  const BlockReader reader(memory);
  EXPECT_EQ(byte_at(reader, 4095), std::byte{0xff});
  const unsigned before = memory.reads;

  EXPECT_EQ(byte_at(reader, 3 * 4096 - 1), std::byte{0xff});
  EXPECT_EQ(memory.reads, before);
  EXPECT_EQ(byte_at(reader, 3 * 4096), std::byte{0xee});
  EXPECT_EQ(memory.reads, before + 1) << "a page that is missing may come";
}

TEST(BlockReader, ReadsWhatThereIsOfABlockAndNamesTheFirstByteThatIsNot) {
  CountedMemory memory(BlockReader::kBlock + 10);
  const BlockReader reader(memory);
  std::array<std::byte, 4> out{};

  EXPECT_EQ(byte_at(reader, BlockReader::kBlock + 9), std::byte{9});
  const auto done = reader.read(GuestVirt(kBlocksBase + BlockReader::kBlock + 8), out);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().address, kBlocksBase + BlockReader::kBlock + 10);
  EXPECT_EQ(out[1], std::byte{9}) << "what lies before it is copied";
}

}  // namespace
}  // namespace ringside::vmm
