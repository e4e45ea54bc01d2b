#include "vmm/saved/compressed_dump.h"

#include <gtest/gtest.h>
#include <lzo/lzo1x.h>
#include <snappy-c.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <string_view>

#include "vmm/saved/compressed_dump_for_tests.h"
#include "vmm/saved/saved_machine.h"

namespace ringside::vmm {
namespace {

constexpr std::size_t kBlock = DumpBuilder::kBlock;
using Bytes = std::vector<std::byte>;

/// 4096 bytes of many values that can be packed, the first one `mark`.
Bytes page_of(char mark) {
  Bytes page(kBlock);
  for (std::size_t i = 0; i < page.size(); ++i) page[i] = static_cast<std::byte>(i / 7);
  page[0] = static_cast<std::byte>(mark);
  return page;
}

constexpr std::uint32_t kZlib = 1, kLzo = 2, kSnappy = 4, kZstd = 0x20;

Bytes packed(std::uint32_t packing, const Bytes& page) {
  Bytes out(4 * kBlock);
  // SAFETY: the libraries take bytes by their own names for them.
  const auto* from = reinterpret_cast<const unsigned char*>(page.data());
  auto* to = reinterpret_cast<unsigned char*>(out.data());
  std::size_t size = out.size();
  if (packing == kZlib) {
    uLongf filled = size;
    EXPECT_EQ(compress(to, &filled, from, page.size()), Z_OK);
    size = filled;
  } else if (packing == kLzo) {
    std::vector<unsigned char> work(LZO1X_1_MEM_COMPRESS);
    lzo_uint filled = size;
    EXPECT_EQ(lzo1x_1_compress(from, page.size(), to, &filled, work.data()), LZO_E_OK);
    size = filled;
  } else if (packing == kSnappy) {
    EXPECT_EQ(snappy_compress(reinterpret_cast<const char*>(from), page.size(),
                              reinterpret_cast<char*>(to), &size),
              SNAPPY_OK);
  } else {
    size = ZSTD_compress(to, size, from, page.size(), 1);
  }
  EXPECT_LT(size, kBlock);
  out.resize(size);
  return out;
}

/// The machine of a file with these bytes.
Result<std::unique_ptr<SavedMachine>> opened(const Bytes& bytes) {
  const UniqueFd file(memfd_create("dump", MFD_CLOEXEC));
  EXPECT_EQ(write(file.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  return SavedMachine::open("/proc/self/fd/" + std::to_string(file.get()));
}

std::string error_of(const Bytes& bytes) {
  const auto machine = opened(bytes);
  return machine ? "none" : machine.error().message;
}

/// The page's bytes; empty where it cannot be read.
Bytes read_page(SavedMachine& machine, std::uint64_t number) {
  Bytes page(kBlock);
  return machine.memory().read(GuestPhys(number * kBlock), page) ? page : Bytes();
}

bool says(const std::string& message, std::string_view what) {
  return message.find(what) != std::string::npos && message.find('\n') == std::string::npos;
}

TEST(CompressedDump, PagesOfAllPackingsReadAsTheyWere) {
  DumpBuilder builder;
  builder.page(1, 0, page_of('r'));
  const std::array packings{kZlib, kLzo, kSnappy, kZstd};
  for (std::size_t i = 0; i < packings.size(); ++i) {
    builder.page(3 + i, packings.at(i),
                 packed(packings.at(i), page_of(static_cast<char>('a' + i))));
  }
  const auto machine = opened(builder.build());
  ASSERT_TRUE(machine.has_value()) << machine.error().message;

  EXPECT_EQ(read_page(**machine, 1), page_of('r'));
  for (std::size_t i = 0; i < packings.size(); ++i) {
    EXPECT_EQ(read_page(**machine, 3 + i), page_of(static_cast<char>('a' + i))) << packings.at(i);
  }
  EXPECT_TRUE(read_page(**machine, 0).empty());
  EXPECT_TRUE(read_page(**machine, 2).empty());
  EXPECT_FALSE((*machine)->is_raw());
  EXPECT_EQ((*machine)->missing(), 0u);
  EXPECT_EQ((*machine)->left_out(), 0u);
  std::array<std::byte, 2> across;  // the end of one page and the begin of another
  ASSERT_TRUE((*machine)->memory().read(GuestPhys(4 * kBlock - 1), across));
  EXPECT_EQ(across[0], page_of('a').back());
  EXPECT_EQ(across[1], std::byte{'b'});
}

TEST(CompressedDump, AFlattenedOneIsTheSame) {
  const Bytes whole = DumpBuilder().page(5, kZlib, packed(kZlib, page_of('f'))).build();
  for (const std::size_t piece : {std::size_t{1000}, kBlock, whole.size()}) {
    const Bytes flat = DumpBuilder::flattened(whole, piece);
    const auto machine = opened(flat);
    ASSERT_TRUE(machine.has_value()) << machine.error().message;
    EXPECT_EQ(read_page(**machine, 5), page_of('f'));

    EXPECT_TRUE(says(error_of({flat.begin(), flat.end() - 17}), "it ends too early"));
  }
  Bytes nowhere = DumpBuilder::flattened(whole, kBlock);
  std::fill_n(nowhere.begin() + kBlock, 8, std::byte{0x7f});
  EXPECT_TRUE(says(error_of(nowhere), "a piece lies nowhere"));
}

TEST(CompressedDump, PagesThatWereLeftOut) {
  DumpBuilder builder;
  builder.page(1, 0, page_of('x')).left_out(2).left_out(3);
  auto machine = opened(builder.build());
  ASSERT_TRUE(machine.has_value()) << machine.error().message;
  EXPECT_EQ(read_page(**machine, 2), Bytes(kBlock)) << "only zeros were left out";
  EXPECT_EQ((*machine)->left_out(), 0u);

  builder.level = 31;
  machine = opened(builder.build());
  EXPECT_EQ(read_page(**machine, 2), Bytes(kBlock));
  EXPECT_EQ((*machine)->left_out(), 2 * kBlock);

  builder.level = 8;
  machine = opened(builder.build());
  EXPECT_TRUE(read_page(**machine, 2).empty()) << "it was another page than one of zeros";
  EXPECT_EQ((*machine)->left_out(), 2 * kBlock);
}

TEST(CompressedDump, ExtentsArePagesInTheFile) {
  DumpBuilder builder;
  builder.left_out(1).page(2, 0, page_of('a')).page(3, 0, page_of('b')).left_out(4);
  const auto machine = opened(builder.build());
  ASSERT_TRUE(machine.has_value()) << machine.error().message;
  const auto extents = (*machine)->memory().present_extents();

  ASSERT_EQ(extents.size(), 1u);
  EXPECT_EQ(extents[0].base, GuestPhys(2 * kBlock));
  EXPECT_EQ(extents[0].size, 2 * kBlock);
}

TEST(CompressedDump, OneThatWasCutShortSaysHowMuchIsMissing) {
  DumpBuilder builder;
  for (std::uint64_t number = 0; number < 4; ++number) builder.page(number, 0, page_of('a'));
  const Bytes whole = builder.build();
  const auto machine = opened({whole.begin(), whole.end() - 2 * kBlock});
  ASSERT_TRUE(machine.has_value()) << machine.error().message;

  EXPECT_EQ((*machine)->missing(), 2 * kBlock);
  EXPECT_FALSE(read_page(**machine, 1).empty());
  EXPECT_TRUE(read_page(**machine, 2).empty());
  const auto bare = opened({whole.begin(), whole.begin() + 4 * kBlock + 30});  // one descriptor
  ASSERT_TRUE(bare.has_value()) << bare.error().message;
  EXPECT_EQ((*bare)->missing(), 4 * kBlock);
}

TEST(CompressedDump, VcpusAreThoseOfItsNotes) {
  DumpBuilder builder;
  builder.page(0, 0, page_of('a'));
  builder.notes.resize(20 + core_notes::kPrStatusBytes);
  const std::array<std::uint32_t, 3> head{5, core_notes::kPrStatusBytes, NT_PRSTATUS};
  std::memcpy(builder.notes.data(), head.data(), sizeof head);
  std::memcpy(&builder.notes[12], "CORE", 5);
  builder.notes[20 + core_notes::kPrStatusRegisters + std::size_t{16} * 8] = std::byte{0x42};
  const auto machine = opened(builder.build());
  ASSERT_TRUE(machine.has_value()) << machine.error().message;

  ASSERT_EQ((*machine)->vcpu_count(), 1u);
  EXPECT_EQ(PausedMachine::pause(**machine)->registers(0)->rip, 0x42u);
  builder.version = 3;  // has no notes
  EXPECT_EQ((*opened(builder.build()))->vcpu_count(), 0u);
}

TEST(CompressedDump, FormsThatAreNotReadAreRefusedWithTheWayOut) {
  DumpBuilder builder;
  builder.page(0, 0, page_of('a'));
  builder.split = 1;
  EXPECT_TRUE(says(error_of(builder.build()), "makedumpfile --reassemble"));
  builder.split = 0;
  builder.version = 7;
  EXPECT_TRUE(says(error_of(builder.build()), "as an ELF core instead"));
  builder.version = 6;
  builder.pages = 8 * kBlock + 1;  // more than the bitmaps have bits
  EXPECT_TRUE(says(error_of(builder.build()), "its bitmaps are too small"));
  builder.pages = std::uint64_t{1} << 40;
  EXPECT_TRUE(says(error_of(builder.build()), "too many pages"));
  const Bytes no_memory = DumpBuilder().build();
  EXPECT_TRUE(says(error_of(no_memory), "it has no memory"));
  EXPECT_TRUE(says(error_of({no_memory.begin(), no_memory.begin() + 5000}), "within its headers"));
  EXPECT_TRUE(says(error_of({no_memory.begin(), no_memory.begin() + 9000}), "within its bitmaps"));
}

TEST(CompressedDump, APageThatIsDamagedIsNotRead) {
  const Bytes page = page_of('a');
  for (const std::uint32_t packing : {0U, kZlib, kLzo, kSnappy, kZstd}) {
    Bytes bytes = packing == 0 ? page : packed(packing, page);
    bytes.pop_back();
    const auto machine = opened(DumpBuilder().page(0, packing, bytes).build());
    ASSERT_TRUE(machine.has_value()) << machine.error().message;
    EXPECT_TRUE(read_page(**machine, 0).empty()) << packing;
  }
  const auto unknown = opened(DumpBuilder().page(0, kZlib | kLzo, page).build());
  EXPECT_TRUE(read_page(**unknown, 0).empty());
}

TEST(CompressedDump, RandomDamageNeverLeadsOutOfTheFile) {
  DumpBuilder builder;
  builder.page(1, 0, page_of('r')).page(2, kZlib, packed(kZlib, page_of('z'))).left_out(3);
  builder.page(9, kLzo, packed(kLzo, page_of('l'))).page(10, kZstd, packed(kZstd, page_of('s')));
  const Bytes whole = builder.build();
  std::mt19937 random(1);
  for (unsigned round = 0; round < 400; ++round) {
    Bytes bytes = whole;
    for (unsigned n = 0; n < 1 + round % 8; ++n) {
      // Half of them in the headers' numbers.
      const std::array places{random() % bytes.size(), 424 + random() % 24,
                              kBlock + random() % 104};
      bytes[places.at(random() % 3)] = static_cast<std::byte>(random());
    }
    if (round % 5 == 0) bytes.resize(random() % bytes.size());
    const auto machine = opened(bytes);
    if (!machine) continue;
    for (std::uint64_t number = 0; number < 16; ++number) read_page(**machine, number);
    for (const auto& extent : (*machine)->memory().present_extents()) EXPECT_NE(extent.size, 0u);
  }
}

}  // namespace
}  // namespace ringside::vmm
