#include "vmm/saved/migration_stream.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace ringside::vmm {
namespace {

constexpr std::size_t kPage = 4096;

/// A stream as QEMU writes it.
class Stream {
 public:
  Stream() { text("QEVM").u32(3).u8(7).u32(4).text("q35x"); }
  Stream& u8(unsigned value) { return number(value, 1); }
  Stream& u16(unsigned value) { return number(value, 2); }
  Stream& u32(std::uint64_t value) { return number(value, 4); }
  Stream& u64(std::uint64_t value) { return number(value, 8); }
  Stream& text(std::string_view value) {
    bytes.insert(bytes.end(), value.begin(), value.end());
    return *this;
  }
  Stream& name(std::string_view value) {
    return u8(static_cast<unsigned>(value.size())).text(value);
  }
  Stream& start(std::string_view section, unsigned version = 4) {
    return u8(1).u32(2).name(section).u32(0).u32(version);
  }
  struct Block {
    std::string_view name;
    std::uint64_t size;
  };
  Stream& blocks(const std::vector<Block>& all) {
    std::uint64_t sum = 0;
    for (const Block& each : all) sum += each.size;
    start("ram").u64(sum | 4);
    for (const Block& each : all) name(each.name).u64(each.size);
    return u64(0x10).footer();
  }
  Stream& footer() { return u8(0x7e).u32(2); }
  Stream& end() { return u8(3).u32(2); }
  Stream& page(std::uint64_t at, std::string_view block, char fill) {
    u64(at | 8 | (block.empty() ? 0x20 : 0));
    if (!block.empty()) name(block);
    bytes.insert(bytes.end(), kPage, fill);
    return *this;
  }

  std::vector<char> bytes;

 private:
  Stream& number(std::uint64_t value, int size) {
    while (size-- > 0) bytes.push_back(static_cast<char>(value >> (8 * size)));
    return *this;
  }
};

Result<StreamedRam> read(const std::vector<char>& bytes) {
  const UniqueFd fd(memfd_create("stream", MFD_CLOEXEC));
  EXPECT_EQ(write(fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  return read_migration_stream(fd.get(), bytes.size());
}

char at(const StreamedRam& ram, std::uint64_t offset) {
  char byte = '-';
  EXPECT_EQ(pread(ram.file.get(), &byte, 1, static_cast<off_t>(offset)), 1);
  return byte;
}

Stream small() {
  Stream stream;
  stream.blocks({{"pc.ram", 4 * kPage}, {"vga.vram", kPage}});
  stream.end().page(kPage, "pc.ram", 'b').page(3 * kPage, "", 'd').page(0, "vga.vram", 'v');
  stream.u64(0 | 2 | 0x20).u8(0).u64(0x10).footer();
  return stream;
}

TEST(MigrationStream, RamIsWhatItsPagesSay) {
  const auto ram = read(small().bytes);
  ASSERT_TRUE(ram.has_value()) << ram.error().message;

  EXPECT_EQ(ram->size, 4 * kPage);
  EXPECT_EQ(at(*ram, 0), '\0');
  EXPECT_EQ(at(*ram, kPage), 'b');
  EXPECT_EQ(at(*ram, 2 * kPage), '\0');
  EXPECT_EQ(at(*ram, 4 * kPage - 1), 'd');
}

TEST(MigrationStream, ALaterPageTakesThePlaceOfAnEarlierOne) {
  Stream stream;
  stream.blocks({{"pc.ram", 4 * kPage}});
  stream.u8(2).u32(2).page(0, "pc.ram", 'a').page(kPage, "", 'b').page(2 * kPage, "", 'c');
  stream.u64(0x10).footer().end();
  stream.u64(0 | 2).name("pc.ram").u8(0);        // zeros
  stream.u64(kPage | 0x40 | 0x20).u8(1).u16(6);  // two bytes as they were, two others
  stream.u8(2).u8(2).text("xy").u8(1).u8(0);
  stream.u64(2 * kPage | 2 | 0x20).u8('z').u64(0x10).footer();
  const auto ram = read(stream.bytes);
  ASSERT_TRUE(ram.has_value()) << ram.error().message;

  EXPECT_EQ(at(*ram, 0), '\0');
  EXPECT_EQ(at(*ram, kPage + 1), 'b');
  EXPECT_EQ(at(*ram, kPage + 2), 'x');
  EXPECT_EQ(at(*ram, kPage + 4), 'b');
  EXPECT_EQ(at(*ram, 2 * kPage), 'z');
}

TEST(MigrationStream, NodesFollowOneAnotherByNumber) {
  Stream stream;
  stream.blocks({{"ram-node1", kPage}, {"ram-node0", kPage}});
  stream.end().page(0, "ram-node1", 'b').page(0, "ram-node0", 'a').u64(0x10).footer();
  const auto ram = read(stream.bytes);
  ASSERT_TRUE(ram.has_value()) << ram.error().message;

  EXPECT_EQ(at(*ram, 0), 'a');
  EXPECT_EQ(at(*ram, kPage), 'b');
}

TEST(MigrationStream, LibvirtsHeaderStandsBeforeIt) {
  const std::string xml = "<domain/>";
  std::vector<char> bytes(92 + xml.size());
  const std::uint32_t words[]{2, static_cast<std::uint32_t>(xml.size()), 1, 0};
  std::memcpy(bytes.data(), "LibvirtQemudSave", 16);
  std::memcpy(bytes.data() + 16, words, sizeof words);
  std::ranges::copy(xml, bytes.begin() + 92);
  std::vector<char> compressed = bytes;
  compressed[28] = 3;
  const auto stream = small().bytes;
  bytes.insert(bytes.end(), stream.begin(), stream.end());

  const auto ram = read(bytes);
  ASSERT_TRUE(ram.has_value()) << ram.error().message;
  EXPECT_EQ(at(*ram, kPage), 'b');
  EXPECT_EQ(
      read(compressed).error().message,
      "it is a compressed libvirt save image (xz); restore it, and write an ELF core instead: "
      "virsh dump --memory-only, or dump-guest-memory");
}

TEST(MigrationStream, WhatIsNotReadIsNamed) {
  const auto refused = [](const Stream& stream) { return read(stream.bytes).error().message; };
  EXPECT_TRUE(
      refused(Stream().start("block")).starts_with("its migration stream has 'block' before"));
  EXPECT_TRUE(
      refused(Stream().start("ram", 5)).starts_with("its RAM is in another version's form"));
  EXPECT_TRUE(
      refused(Stream().blocks({{"mach-virt.ram", kPage}})).starts_with("none of its blocks"));
  EXPECT_TRUE(refused(Stream().blocks({{"pc.ram", kPage}, {"dimm0", kPage}}))
                  .starts_with("it has memory ('dimm0') whose place"));
  Stream compressed;
  compressed.blocks({{"pc.ram", kPage}}).end().u64(0x100).name("pc.ram").u32(10);
  EXPECT_TRUE(refused(compressed).starts_with("its pages of RAM are in a form (flags 0x100)"));
}

TEST(MigrationStream, ADamagedOneIsRefusedWhereverItEnds) {
  const auto whole = small().bytes;
  for (std::size_t size = 0; size + 6 < whole.size(); size += size < 200 ? 1 : 997) {
    const auto ram = read({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
    ASSERT_FALSE(ram.has_value()) << size;
    EXPECT_EQ(ram.error().code, ErrorCode::Invalid) << ram.error().message;
  }
  Stream outside, twice, differences, endless;
  outside.blocks({{"pc.ram", kPage}}).end().page(kPage, "pc.ram", 'a').u64(0x10);
  twice.blocks({{"pc.ram", kPage}}).blocks({{"pc.ram", kPage}});
  differences.blocks({{"pc.ram", kPage}}).end().u64(0x40).name("pc.ram").u8(1).u16(2).u8(0).u8(9);
  endless.blocks({{"pc.ram", ~std::uint64_t{0} << 12}});
  for (const Stream* each : {&outside, &twice, &differences, &endless}) {
    EXPECT_EQ(read(each->bytes).error().code, ErrorCode::Invalid);
  }
}

}  // namespace
}  // namespace ringside::vmm
