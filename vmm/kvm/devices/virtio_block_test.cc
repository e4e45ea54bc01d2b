#include "vmm/kvm/devices/virtio_block.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "vmm/kvm/devices/testing/fake_driver.h"
#include "vmm/kvm/devices/testing/temporary_disk.h"
#include "vmm/kvm/devices/virtio_mmio.h"

namespace ringside::vmm::kvm {
namespace {

constexpr std::uint64_t kHead = kData, kStatus = kData + 0x100;
constexpr std::uint64_t kBuffer = kData + 0x1000;
enum Type : std::uint32_t { kIn = 0, kOut = 1, kFlush = 4, kGetId = 8 };

class Block : public testing::Test {
 protected:
  explicit Block(bool read_only = false)
      : block_(*DiskFile::open({file_.path(), read_only}), "serial-number-longer-than-20") {}
  void SetUp() override { ASSERT_EQ(driver_.bring_up(mmio_), 15u); }

  /// The status byte that a request ends with.
  unsigned request(std::uint32_t type, std::uint64_t sector,
                   std::initializer_list<FakeDriver::Piece> data) {
    driver_.put(kHead, type);
    driver_.put(kHead + 8, sector);
    driver_.put(kStatus, std::uint8_t{0xee});
    driver_.descriptor(0, kHead, 16, FakeDriver::kNext, 1);
    std::uint16_t index = 1;
    for (const auto& piece : data) {
      driver_.descriptor(index, piece.address, piece.length, piece.flags | FakeDriver::kNext,
                         static_cast<std::uint16_t>(index + 1));
      ++index;
    }
    driver_.descriptor(index, kStatus, 1, kWrite);
    driver_.offer(0);
    write_to(mmio_, 0x050, 0, 4);
    return driver_.get<std::uint8_t>(kStatus);
  }
  std::uint32_t written() const {
    return driver_.used(static_cast<std::uint16_t>(driver_.used_index() - 1)).second;
  }

  TemporaryDisk file_{std::string(512, 'a') + std::string(512, 'b') + std::string(1024, 'c')};
  FakeLine line_;
  FakeDriver driver_{16};
  VirtioBlock block_;
  VirtioMmio mmio_{line_, driver_.memory(), block_};
};

class ReadOnlyBlock : public Block {
 protected:
  ReadOnlyBlock() : Block(true) {}
};

TEST_F(Block, TellsItsSizeAndLimits) {
  EXPECT_EQ(read_from(mmio_, 0x100, 8), 4u);
  EXPECT_EQ(read_from(mmio_, 0x108, 4), VirtioBlock::kLargestPiece);
  EXPECT_EQ(read_from(mmio_, 0x10c, 4), VirtioBlock::kMostPieces);
  EXPECT_EQ(read_from(mmio_, 0x114, 4), 512u);
  EXPECT_EQ(block_.features() & (1 << 5), 0u);
}

TEST_F(Block, ReadsIntoSeveralPieces) {
  EXPECT_EQ(request(kIn, 1, {{kBuffer, 100, kWrite}, {kBuffer + 0x800, 924, kWrite}}), 0u);
  EXPECT_EQ(written(), 1025u);
  EXPECT_EQ(driver_.text(kBuffer, 100), std::string(100, 'b'));
  EXPECT_EQ(driver_.text(kBuffer + 0x800, 924), std::string(412, 'b') + std::string(512, 'c'));
  EXPECT_TRUE(line_.level());
}

TEST_F(Block, WritesAndFlushes) {
  driver_.put_text(kBuffer, std::string(1024, 'x'));
  EXPECT_EQ(request(kOut, 2, {{kBuffer, 512}, {kBuffer + 512, 512}}), 0u);
  EXPECT_EQ(written(), 1u);
  EXPECT_EQ(request(kFlush, 0, {}), 0u);
  EXPECT_EQ(file_.content(),
            std::string(512, 'a') + std::string(512, 'b') + std::string(1024, 'x'));
}

TEST_F(Block, TellsItsIdCutToTwentyBytes) {
  EXPECT_EQ(request(kGetId, 0, {{kBuffer, 20, kWrite}}), 0u);
  EXPECT_EQ(driver_.text(kBuffer, 21), std::string("serial-number-longer") + '\0');
}

TEST_F(Block, RefusesWhatIsBeyondTheEndOrNotSectors) {
  const auto before = file_.content();
  EXPECT_EQ(request(kIn, 4, {{kBuffer, 512, kWrite}}), 1u);
  EXPECT_EQ(written(), 0u);
  EXPECT_EQ(request(kIn, 3, {{kBuffer, 1024, kWrite}}), 1u);
  EXPECT_EQ(request(kIn, UINT64_MAX, {{kBuffer, 512, kWrite}}), 1u);
  EXPECT_EQ(request(kIn, std::uint64_t{1} << 55, {{kBuffer, 512, kWrite}}), 1u);
  EXPECT_EQ(request(kIn, 0, {{kBuffer, 511, kWrite}}), 1u);
  EXPECT_EQ(request(kOut, 4, {{kBuffer, 512}}), 1u);
  EXPECT_EQ(request(kOut, 3, {{kBuffer, 513}}), 1u);
  EXPECT_EQ(request(kIn, 4, {}), 0u) << "nothing, at the end";
  EXPECT_EQ(file_.content(), before);
}

TEST_F(Block, SaysThatItDoesNotKnowARequest) {
  EXPECT_EQ(request(11, 0, {{kBuffer, 16}}), 2u);
  EXPECT_EQ(request(UINT32_MAX, 0, {}), 2u);
}

TEST_F(Block, ARequestWithoutAHeadOrAStatusIsGivenBack) {
  driver_.offer(0, {{kHead, 15}, {kStatus, 1, kWrite}});
  driver_.offer(2, {{kHead, 16}});
  write_to(mmio_, 0x050, 0, 4);
  EXPECT_EQ(driver_.get<std::uint8_t>(kStatus), 1u);
  EXPECT_EQ(driver_.used_index(), 2u);
  EXPECT_EQ(driver_.used(1), std::pair(2u, 0u));
}

TEST_F(Block, AFileThatBecameShorterIsAnIoError) {
  std::filesystem::resize_file(file_.path(), 512);
  EXPECT_EQ(request(kIn, 1, {{kBuffer, 512, kWrite}}), 1u);
  EXPECT_EQ(request(kIn, 0, {{kBuffer, 512, kWrite}}), 0u);
}

TEST_F(ReadOnlyBlock, ReadsAndNeverWrites) {
  EXPECT_NE(block_.features() & (1 << 5), 0u);
  EXPECT_EQ(request(kIn, 0, {{kBuffer, 512, kWrite}}), 0u);
  EXPECT_EQ(request(kOut, 0, {{kBuffer, 512}}), 1u);
  EXPECT_EQ(file_.content().front(), 'a');
}

TEST(DiskFile, RefusesOtherFormatsWithTheWayOut) {
  const auto made = [](std::size_t offset, std::string magic) {
    std::string content(1024, '\0');
    return content.replace(offset, magic.size(), magic);
  };
  const std::pair<std::string, std::string> formats[] = {
      {"qcow2", made(0, "QFI\xfb")},
      {"qed", made(0, std::string("QED\0", 4))},
      {"vmdk", made(0, "KDMV")},
      {"vmdk", made(0, "# Disk DescriptorFile\n")},
      {"vdi", made(0x40, "\x7f\x10\xda\xbe")},
      {"vhdx", made(0, "vhdxfile")},
      {"luks", made(0, "LUKS\xba\xbe")},
  };
  for (const auto& [name, content] : formats) {
    const TemporaryDisk file(content);
    EXPECT_EQ(message_of({file.path(), true}),
              "the disk " + file.path() + " is a " + name +
                  " image, only raw ones can be used: qemu-img convert -O raw " + file.path() +
                  " " + file.path() + ".raw");
  }
}

TEST(DiskFile, RefusesWhatCannotBeADisk) {
  const TemporaryDisk odd(std::string(513, 'o')), empty("");
  const std::string folder = testing::TempDir();

  EXPECT_EQ(message_of({odd.path(), false}), "the disk " + odd.path() +
                                                 " has 513 bytes, not a multiple of 512: "
                                                 "truncate -s %512 " +
                                                 odd.path());
  EXPECT_EQ(message_of({empty.path(), false}), "the disk " + empty.path() +
                                                   " is empty: truncate -s 1G " + empty.path() +
                                                   " makes it one of 1 GiB");
  for (const bool read_only : {false, true}) {
    EXPECT_EQ(message_of({folder, read_only}),
              "the disk " + folder + " is a directory; a raw image or a block device is needed");
  }
  EXPECT_EQ(message_of({"/dev/null", true}),
            "the disk /dev/null is no file; a raw image or a block device is needed");
  EXPECT_EQ(message_of({"/nowhere/disk", false}),
            "there is no disk /nowhere/disk: truncate -s 1G /nowhere/disk makes one");
}

TEST(DiskFile, MovesMorePiecesThanOneCallTakes) {
  const TemporaryDisk file(std::string(100 * 512, 'p'));
  auto disk = *DiskFile::open({file.path(), false});
  std::vector<std::vector<std::byte>> buffers(100, std::vector<std::byte>(512));
  std::vector<std::span<std::byte>> pieces;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    std::memset(buffers[i].data(), int(i), buffers[i].size());
    pieces.emplace_back(buffers[i]);
  }
  ASSERT_TRUE(disk.write(0, pieces));
  std::vector<std::byte> back(100 * 512);
  const std::span<std::byte> whole(back);
  ASSERT_TRUE(disk.read(0, {&whole, 1}));
  for (std::size_t i = 0; i < 100; ++i) ASSERT_EQ(back[i * 512 + 511], std::byte(i));
  EXPECT_FALSE(disk.read(512, {&whole, 1})) << "the last sector is not there";
}

}  // namespace
}  // namespace ringside::vmm::kvm
