#include "vmm/page_walk.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "vmm/arch/arch.h"

namespace ringside::vmm {
namespace {

using arch::kPageSize;
constexpr std::uint64_t kRamSize = 4 << 20;
constexpr std::uint64_t kKernel = 0xffff'ffff'8100'0000;
constexpr std::uint64_t kPresent = 3, kLarge = 0x80;

/// RAM with page tables that tests fill entry by entry; tables are handed out from 0x10000 up.
class Guest {
 public:
  explicit Guest(unsigned levels = 4)
      : ram_(kRamSize), memory_({{GuestPhys(0), ram_}}), table_{GuestPhys(0x10000), levels, 0} {}

  GuestMemory& memory() { return memory_; }
  PageTable& table() { return table_; }
  std::vector<std::byte>& ram() { return ram_; }

  /// Sets the entry of `level` for `at`, making the tables above it.
  GuestPhys set(std::uint64_t at, unsigned level, std::uint64_t entry) {
    std::uint64_t base = table_.root.raw();
    for (unsigned here = table_.levels; here > level; --here) {
      const GuestPhys where(base + index(at, here) * 8);
      if (*memory_.load64(where) == 0) {
        EXPECT_TRUE(memory_.store64(where, (next_ += kPageSize) | kPresent));
      }
      base = *memory_.load64(where) & ~(kPageSize - 1);
    }
    const GuestPhys where(base + index(at, level) * 8);
    EXPECT_TRUE(memory_.store64(where, entry));
    return where;
  }
  std::optional<Translation> walk(std::uint64_t at) {
    return translate(memory_, table_, GuestVirt(at));
  }

 private:
  static std::uint64_t index(std::uint64_t at, unsigned level) {
    return (at >> (12 + 9 * (level - 1))) & 511;
  }
  std::vector<std::byte> ram_;
  GuestMemory memory_;
  PageTable table_;
  std::uint64_t next_ = 0x10000;
};

TEST(PageWalk, TranslatesEveryPageSizeAtBothDepths) {
  for (unsigned levels : {4u, 5u}) {
    Guest guest(levels);
    guest.set(kKernel, 1, 0x8000'0000'0000'0000 | 0x5000 | kPresent);  // no-execute is no address
    guest.set(0x40'0000, 2, 0x20'0000 | 0x1000 | kLarge | kPresent);   // PAT is no address
    guest.set(0x80'0000'0000, 3, 0x4000'0000 | kLarge | kPresent);

    const auto small = guest.walk(kKernel + 0x123);
    const auto large = guest.walk(0x40'0000 + 0x12345);
    const auto huge = guest.walk(0x80'0000'0000 + 0x1234567);

    ASSERT_TRUE(small && large && huge);
    EXPECT_EQ(small->address.raw(), 0x5123u);
    EXPECT_EQ(small->page_size, 4096u);
    EXPECT_EQ(small->page_base, kKernel);
    EXPECT_EQ(large->address.raw(), 0x212345u);
    EXPECT_EQ(large->page_size, 2u << 20);
    EXPECT_EQ(large->page_base, 0x40'0000u);
    EXPECT_EQ(huge->address.raw(), 0x41234567u);
    EXPECT_EQ(huge->page_size, 1u << 30);
  }
}

TEST(PageWalk, FindsNothingWhereAnEntryOfAnyLevelIsAbsent) {
  for (unsigned level = 1; level <= 5; ++level) {
    Guest guest(5);
    guest.set(kKernel, 1, 0x5000 | kPresent);
    guest.set(kKernel, level, 0x5000);  // not present
    EXPECT_FALSE(guest.walk(kKernel)) << "level " << level;
  }
}

TEST(PageWalk, FindsPagesThatLinuxKeepsFromAllWhenItIsAskedTo) {
  constexpr std::uint64_t kGlobal = 0x100, kAddress = 0x000f'ffff'ffff'f000;
  Guest guest;
  guest.set(kKernel, 1, (0x5000 ^ kAddress) | kGlobal);
  guest.set(0x40'0000, 2, (0x20'0000 ^ kAddress) | kLarge | kGlobal);
  guest.set(0x80'0000, 1, 0x1234'5000);  // swapped out
  guest.set(0x80'1000, 1, 0x6000 | kPresent | kGlobal);
  const auto mapped = [&guest](std::uint64_t at) {
    const auto found = translate_mapped(guest.memory(), guest.table(), GuestVirt(at));
    return found ? found->address.raw() : 0;
  };
  EXPECT_EQ(mapped(kKernel + 0x123), 0x5123u);
  EXPECT_EQ(mapped(0x40'0000 + 0x12345), 0x212345u);
  EXPECT_EQ(mapped(0x80'0000), 0u);
  EXPECT_EQ(mapped(0x80'1000), 0x6000u);
  EXPECT_EQ(mapped(0xc0'0000), 0u) << "no table is there";
  EXPECT_FALSE(guest.walk(kKernel));
  EXPECT_FALSE(guest.walk(0x40'0000));
}

TEST(PageWalk, RefusesNonCanonicalAddresses) {
  Guest four(4), five(5);
  four.set(kKernel, 1, 0x5000 | kPresent);
  five.set(kKernel, 1, 0x5000 | kPresent);

  EXPECT_FALSE(four.walk(kKernel & 0x0000'ffff'ffff'ffff));
  EXPECT_FALSE(four.walk(kKernel & 0xff7f'ffff'ffff'ffff));
  EXPECT_FALSE(five.walk(kKernel & 0x00ff'ffff'ffff'ffff));
  EXPECT_TRUE(four.walk(kKernel));
  EXPECT_TRUE(five.walk(kKernel));
}

TEST(PageWalk, RefusesReservedBitsOfLargePages) {
  Guest guest(5);
  guest.set(0x40'0000, 2, 0x20'2000 | kLarge | kPresent);
  guest.set(0x80'0000'0000, 3, 0x4020'0000 | kLarge | kPresent);
  guest.set(kKernel, 4, kLarge | kPresent);
  EXPECT_FALSE(guest.walk(0x40'0000));
  EXPECT_FALSE(guest.walk(0x80'0000'0000));
  EXPECT_FALSE(guest.walk(kKernel)) << "512 GiB pages do not exist";
}

TEST(PageWalk, StopsWhereATableLiesOutsideRam) {
  Guest guest;
  guest.set(kKernel, 3, 0x000f'ffff'ffff'f000 | kPresent);
  EXPECT_FALSE(guest.walk(kKernel));
  guest.table().root = GuestPhys(kRamSize);
  EXPECT_FALSE(guest.walk(kKernel));
}

TEST(PageWalk, RefusesTableDepthsThatDoNotExist) {
  Guest guest;
  guest.set(kKernel, 1, 0x5000 | kPresent);
  for (unsigned levels : {0u, 1u, 3u, 6u, 64u}) {
    guest.table().levels = levels;
    EXPECT_FALSE(guest.walk(kKernel));
    EXPECT_FALSE(entry_address(guest.memory(), guest.table(), GuestVirt(kKernel), 1));
  }
}

TEST(PageWalk, ATableThatPointsAtItselfEnds) {
  Guest guest;
  for (unsigned i = 0; i < 512; ++i) {
    ASSERT_TRUE(guest.memory().store64(GuestPhys(0x10000 + i * 8), 0x10000 | kPresent));
  }
  const auto found = guest.walk(kKernel + 5);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->address.raw(), 0x10005u);
}

TEST(PageWalk, ClearsTheEncryptionBit) {
  constexpr std::uint64_t kC = std::uint64_t{1} << 47;
  Guest guest;
  guest.set(kKernel, 1, 0x5000 | kC | kPresent);

  EXPECT_EQ(guest.walk(kKernel)->address.raw(), 0x5000 | kC);
  guest.table().encryption_mask = kC;

  EXPECT_EQ(guest.walk(kKernel)->address.raw(), 0x5000u);
}

TEST(PageWalk, NamesTheEntryOfALevelEvenWhenItIsAbsent) {
  Guest guest;
  const GuestPhys pte = guest.set(kKernel, 1, 0);
  guest.set(0x40'0000, 2, 0x20'0000 | kLarge | kPresent);

  EXPECT_EQ(entry_address(guest.memory(), guest.table(), GuestVirt(kKernel), 1), pte);
  EXPECT_TRUE(entry_address(guest.memory(), guest.table(), GuestVirt(0x40'0000), 2));
  EXPECT_FALSE(entry_address(guest.memory(), guest.table(), GuestVirt(0x40'0000), 1))
      << "a large page has no table below";
  EXPECT_FALSE(entry_address(guest.memory(), guest.table(), GuestVirt(kKernel), 0));
  EXPECT_FALSE(entry_address(guest.memory(), guest.table(), GuestVirt(kKernel), 5));
}

TEST(PageWalk, GarbageTablesNeverLeaveRam) {
  Guest guest(5);
  std::mt19937_64 random(1);
  for (std::uint64_t at = 0; at < kRamSize; at += 8) {
    ASSERT_TRUE(guest.memory().store64(GuestPhys(at), random() % kRamSize | random() % 4096));
  }
  const PageTableReader reader(guest.memory(), guest.table());
  std::array<std::byte, 100> out{};
  for (int i = 0; i < 20000; ++i) {
    const GuestVirt at(random() | 0xff00'0000'0000'0000);
    const auto read = reader.read(at, out);
    if (!read) {
      EXPECT_LT(read.error().address - at.raw(), out.size());
    }
    reader.forget();
  }
}

TEST(PageTableReader, ReadsAcrossPagesThatLieApart) {
  Guest guest;
  guest.set(kKernel, 1, 0x5000 | kPresent);
  guest.set(kKernel + kPageSize, 1, 0x3000 | kPresent);
  ASSERT_TRUE(guest.memory().store64(GuestPhys(0x5ff8), 0x1111'1111'2222'2222));
  ASSERT_TRUE(guest.memory().store64(GuestPhys(0x3000), 0x3333'3333'4444'4444));
  const PageTableReader reader(guest.memory(), guest.table());

  const auto value = load<std::uint64_t>(reader, GuestVirt(kKernel + kPageSize - 4));

  ASSERT_TRUE(value);
  EXPECT_EQ(*value, 0x4444'4444'1111'1111u);
}

TEST(PageTableReader, FaultsAtTheFirstUnmappedByteAndKeepsTheBytesBefore) {
  Guest guest;
  guest.set(kKernel, 1, 0x5000 | kPresent);
  guest.ram()[0x5fff] = std::byte{42};
  const PageTableReader reader(guest.memory(), guest.table());
  std::array<std::byte, 4> out{};

  const auto read = reader.read(GuestVirt(kKernel + kPageSize - 1), out);

  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, FaultKind::BadAddress);
  EXPECT_EQ(read.error().address, kKernel + kPageSize);
  EXPECT_EQ(out[0], std::byte{42});
}

TEST(PageTableReader, FaultsWhereALargePageLeavesRam) {
  Guest guest;
  guest.set(0x40'0000, 2, 0x20'0000 | kLarge | kPresent);
  guest.set(0x60'0000, 2, 0x40'0000 | kLarge | kPresent);  // RAM ends at 4 MiB
  const PageTableReader reader(guest.memory(), guest.table());
  std::vector<std::byte> out(3 << 20);

  const auto read = reader.read(GuestVirt(0x40'0000), out);

  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().address, 0x60'0000u);
}

TEST(PageTableReader, NeverWrapsAroundTheAddressSpace) {
  Guest guest;
  guest.set(UINT64_MAX, 1, 0x5000 | kPresent);
  guest.set(0, 1, 0x6000 | kPresent);
  const PageTableReader reader(guest.memory(), guest.table());
  std::array<std::byte, 8> out{};

  const auto read = reader.read(GuestVirt(UINT64_MAX - 3), out);

  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().address, 0u);
}

TEST(PageTableReader, SeesARemappedPageAfterForget) {
  Guest guest;
  guest.set(kKernel, 1, 0x5000 | kPresent);
  guest.ram()[0x5000] = std::byte{1};
  guest.ram()[0x6000] = std::byte{2};
  PageTableReader reader(guest.memory(), guest.table());

  EXPECT_EQ(load<std::uint8_t>(reader, GuestVirt(kKernel)), 1);
  guest.set(kKernel, 1, 0x6000 | kPresent);
  EXPECT_EQ(load<std::uint8_t>(reader, GuestVirt(kKernel)), 1) << "one firing sees one mapping";
  reader.forget();
  EXPECT_EQ(load<std::uint8_t>(reader, GuestVirt(kKernel)), 2);
}

TEST(PageTableReader, KeepsNothingOfAnotherTable) {
  Guest guest;
  guest.set(kKernel, 1, 0x5000 | kPresent);
  PageTableReader reader(guest.memory(), guest.table());
  ASSERT_TRUE(load<std::uint8_t>(reader, GuestVirt(kKernel)));

  reader.set_table({GuestPhys(0x300000), 4, 0});

  EXPECT_FALSE(load<std::uint8_t>(reader, GuestVirt(kKernel)));
}

TEST(PageTableOf, TellsTheLevelsAndThatThereIsNone) {
  Registers r;
  EXPECT_FALSE(arch::pages(r));
  EXPECT_FALSE(arch::in_long_mode(r));
  r.cr0 = 0x8000'0001, r.efer = 0x500, r.cr3 = 0x1234'5018;
  EXPECT_TRUE(arch::pages(r));
  EXPECT_TRUE(arch::in_long_mode(r));
  EXPECT_EQ(arch::page_table_of(r).root.raw(), 0x1234'5000u);
  EXPECT_EQ(arch::page_table_of(r).levels, 4u);
  r.cr4 = 0x1000;
  EXPECT_EQ(arch::page_table_of(r).levels, 5u);
}

TEST(PageTableReader, ReadsLargePagesAndSmallOnesInOneGoAndNamesTheFirstByteThatIsNotThere) {
  Guest guest;
  for (std::size_t i = 0x10'0000; i < guest.ram().size(); ++i) {  // above the tables
    guest.ram()[i] = static_cast<std::byte>(i / kPageSize ^ i);
  }
  guest.set(kKernel, 2, 0x20'0000 | kPresent | kLarge);
  for (std::uint64_t page = 0; page < 20; ++page) {
    guest.set(kKernel + 0x20'0000 + page * kPageSize, 1,
              (0x10'0000 + (19 - page) * kPageSize) | kPresent);
  }
  const PageTableReader reader(guest.memory(), guest.table());
  std::vector<std::byte> out(0x18'0000 + 20 * kPageSize - 5);

  ASSERT_TRUE(reader.read(GuestVirt(kKernel + 0x8'0005), out));
  EXPECT_EQ(std::memcmp(out.data(), &guest.ram()[0x28'0005], 0x17'fffb), 0);
  for (std::size_t page = 0; page < 20; ++page) {
    EXPECT_EQ(std::memcmp(&out[0x17'fffb + page * kPageSize],
                          &guest.ram()[0x10'0000 + (19 - page) * kPageSize], kPageSize),
              0)
        << page;
  }

  out.resize(0x20'0000 + 21 * kPageSize);
  const auto beyond = reader.read(GuestVirt(kKernel), out);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().address, kKernel + 0x20'0000 + 20 * kPageSize);
  EXPECT_EQ(out[0x20'0000 + 19 * kPageSize + 7], guest.ram()[0x10'0007])
      << "what lies before is copied";
}

TEST(TableCopies, TranslatesAsAWalkDoes) {
  Guest guest;
  guest.set(kKernel, 2, 0x20'0000 | kPresent | kLarge);
  for (std::uint64_t at = kKernel + 0x20'0000; at < kKernel + 0x200'0000; at += 0x20'0000) {
    guest.set(at, 1, 0x10'0000 | kPresent);
  }
  TableCopies tables(guest.memory());

  for (std::uint64_t at = kKernel - kPageSize; at < kKernel + 0x240'0000;
       at += 0x10'0000 + kPageSize / 2) {
    const auto walked = guest.walk(at);
    const auto copied = tables.translate(guest.table(), GuestVirt(at));
    ASSERT_EQ(copied.has_value(), walked.has_value()) << std::hex << at;
    if (walked) {
      EXPECT_EQ(copied->address, walked->address);
    }
    const auto entry = entry_address(guest.memory(), guest.table(), GuestVirt(at), 2);
    const auto value = entry ? guest.memory().load64(*entry) : std::nullopt;
    EXPECT_EQ(tables.entry(guest.table(), GuestVirt(at), 2), value);
  }
}

}  // namespace
}  // namespace ringside::vmm
