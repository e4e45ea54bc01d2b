#include "vmm/attach/ram/guest_ram.h"

#include <gtest/gtest.h>

#include "vmm/attach/ram/fake_guest_for_tests.h"

namespace ringside::vmm {
namespace {

constexpr std::uint64_t kMiB = 1 << 20, kGiB = 1 << 30, k4GiB = 4 * kGiB;
constexpr std::uint64_t kHost = 0x7f00'0000'0000;
constexpr std::uint64_t kImage = 64 * kMiB;

MemoryMapping mapping(std::uint64_t begin, std::uint64_t size) {
  MemoryMapping made;
  made.begin = begin;
  made.end = begin + size;
  made.readable = made.writable = true;
  return made;
}

struct Process {
  std::shared_ptr<SparseBytes> bytes = std::make_shared<SparseBytes>();
  std::vector<RamCandidate> candidates;

  void map(std::uint64_t begin, std::uint64_t size) {
    candidates.push_back({mapping(begin, size), bytes, begin});
  }
};

std::uint64_t at_start(std::uint64_t guest) {
  return kHost + guest;
}

void expect_range(const RamRange& range, std::uint64_t base, std::uint64_t size,
                  std::size_t candidate, std::uint64_t start) {
  EXPECT_EQ(range.base.raw(), base);
  EXPECT_EQ(range.size, size);
  EXPECT_EQ(range.candidate, candidate);
  EXPECT_EQ(range.start, start);
}

TEST(GuestRam, OneMappingIsAllOfIt) {
  Process process;
  process.map(kHost, 512 * kMiB);
  FakeLinux guest(*process.bytes, at_start, kImage, 512 * kMiB);

  const auto found = find_guest_ram(process.candidates);

  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_EQ(found->release, "6.1.0-test");
  ASSERT_EQ(found->ranges.size(), 1u);
  expect_range(found->ranges[0], 0, 512 * kMiB, 0, 0);
}

TEST(GuestRam, NeighboursThatWereJoinedToItAreLeftOut) {
  Process process;
  process.map(kHost - 8 * kMiB, 512 * kMiB + 24 * kMiB);
  FakeLinux guest(*process.bytes, at_start, kImage, 512 * kMiB);

  const auto found = find_guest_ram(process.candidates);

  ASSERT_TRUE(found.has_value()) << found.error().message;
  ASSERT_EQ(found->ranges.size(), 1u);
  expect_range(found->ranges[0], 0, 512 * kMiB, 0, 8 * kMiB);
}

/// RAM of 6 GiB of which 3 lie below 4 GiB, in one mapping: as QEMU has it.
std::uint64_t at_pieces(std::uint64_t guest) {
  return kHost + (guest < k4GiB ? guest : guest - kGiB);
}

TEST(GuestRam, OneMappingHoldsWhatLiesBelowAndAbove4GiB) {
  for (const std::uint64_t image : {kImage, k4GiB + kImage}) {
    Process process;
    process.map(kHost, 6 * kGiB);
    FakeLinux guest(*process.bytes, at_pieces, image, 7 * kGiB);

    const auto found = find_guest_ram(process.candidates);

    ASSERT_TRUE(found.has_value()) << found.error().message;
    ASSERT_EQ(found->ranges.size(), 2u);
    expect_range(found->ranges[0], 0, 3 * kGiB, 0, 0);
    expect_range(found->ranges[1], k4GiB, 3 * kGiB, 0, 3 * kGiB);
  }
}

TEST(GuestRam, AStrangerMayLieBelowOrAboveIt) {
  for (const std::uint64_t image : {kImage, k4GiB + kImage}) {
    Process process;
    for (const MemoryMapping& each :
         ram_candidates({mapping(kHost - 8 * kMiB, 8 * kMiB), mapping(kHost, 6 * kGiB),
                         mapping(kHost + 6 * kGiB, 16 * kMiB)})) {
      process.map(each.begin, each.size());
    }
    FakeLinux guest(*process.bytes, at_pieces, image, 7 * kGiB);

    const auto found = find_guest_ram(process.candidates);

    ASSERT_TRUE(found.has_value()) << found.error().message;
    ASSERT_EQ(found->ranges.size(), 2u);
    expect_range(found->ranges[0], 0, 3 * kGiB, 1, 0);
    expect_range(found->ranges[1], k4GiB, 3 * kGiB, 1, 3 * kGiB);
  }
}

TEST(GuestRam, EachPartMayHaveAMapping) {
  constexpr std::uint64_t kOther = 0x7e00'0000'0000;
  for (const std::uint64_t image : {kImage, k4GiB + kImage}) {
    Process process;
    process.map(kOther, 2 * kGiB);
    process.map(kHost, 3 * kGiB);
    process.map(0x7d00'0000'0000, 64 * kMiB);  // something else
    const auto where = [](std::uint64_t guest) {
      return guest < k4GiB ? kHost + guest : kOther + (guest - k4GiB);
    };
    FakeLinux guest(*process.bytes, where, image, 6 * kGiB);

    const auto found = find_guest_ram(process.candidates);

    ASSERT_TRUE(found.has_value()) << found.error().message;
    ASSERT_EQ(found->ranges.size(), 2u);
    expect_range(found->ranges[0], 0, 3 * kGiB, 1, 0);
    expect_range(found->ranges[1], k4GiB, 2 * kGiB, 0, 0);
  }
}

/// Two nodes: the second one's memory lies anywhere in the process.
constexpr std::uint64_t kSecond = 0x7e00'0000'0000;

TEST(GuestRam, TwoNodesHaveAMappingEach) {
  for (const std::uint64_t image : {kImage, 256 * kMiB + kImage}) {
    Process process;
    process.map(0x7d00'0000'0000, 256 * kMiB);  // something else
    process.map(kSecond, 256 * kMiB);
    process.map(kHost, 256 * kMiB);
    const auto where = [](std::uint64_t guest) {
      return guest < 256 * kMiB ? kHost + guest : kSecond + (guest - 256 * kMiB);
    };
    // The firmware keeps the last 128 KiB.
    FakeLinux guest(*process.bytes, where, image, 512 * kMiB - 128 * 1024);

    const auto found = find_guest_ram(process.candidates);

    ASSERT_TRUE(found.has_value()) << found.error().message;
    ASSERT_EQ(found->ranges.size(), 2u);
    expect_range(found->ranges[0], 0, 256 * kMiB, 2, 0);
    expect_range(found->ranges[1], 256 * kMiB, 256 * kMiB, 1, 0);
  }
}

TEST(GuestRam, ANodeMayLieOnBothSidesOf4GiB) {
  // 3 GiB below; the first node has 2 GiB, the second 4.
  for (const std::uint64_t image : {kImage, 2 * kGiB + kImage, k4GiB + kImage}) {
    Process process;
    process.map(kSecond, 4 * kGiB);
    process.map(kHost, 2 * kGiB);
    const auto where = [](std::uint64_t guest) {
      const std::uint64_t line = guest < k4GiB ? guest : guest - kGiB;
      return line < 2 * kGiB ? kHost + line : kSecond + (line - 2 * kGiB);
    };
    FakeLinux guest(*process.bytes, where, image, 7 * kGiB);

    const auto found = find_guest_ram(process.candidates);

    ASSERT_TRUE(found.has_value()) << found.error().message;
    ASSERT_EQ(found->ranges.size(), 3u);
    expect_range(found->ranges[0], 0, 2 * kGiB, 1, 0);
    expect_range(found->ranges[1], 2 * kGiB, kGiB, 0, 0);
    expect_range(found->ranges[2], k4GiB, 3 * kGiB, 0, kGiB);
  }
}

TEST(GuestRam, AGapMayBeLeftInOneLine) {
  Process process;
  process.map(kHost, 3 * kGiB);
  process.map(kHost + k4GiB, 2 * kGiB + 16 * kMiB);  // with a neighbour
  FakeLinux guest(*process.bytes, at_start, kImage, 6 * kGiB);

  const auto found = find_guest_ram(process.candidates);

  ASSERT_TRUE(found.has_value()) << found.error().message;
  ASSERT_EQ(found->ranges.size(), 2u);
  expect_range(found->ranges[1], k4GiB, 2 * kGiB, 1, 0);
}

void expect_refused(const Process& process, std::string_view words) {
  const auto found = find_guest_ram(process.candidates);

  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, ErrorCode::Unsupported);
  EXPECT_NE(found.error().message.find(words), std::string::npos) << found.error().message;
}

TEST(GuestRam, WithoutALinuxThereIsNone) {
  Process process;
  expect_refused(process, "no Linux is to be seen");
  process.map(kHost, 512 * kMiB);
  expect_refused(process, "no Linux is to be seen");
}

TEST(GuestRam, EncryptedMemoryIsRefused) {
  Process process;
  process.map(kHost, 512 * kMiB);
  FakeLinux guest(*process.bytes, at_start, kImage, 512 * kMiB);
  guest.write_info("NUMBER(sme_mask)=8796093022208\n");

  expect_refused(process, "encrypts its memory");
}

TEST(GuestRam, ADescriptionThatLiesIsNotBelieved) {
  Process process;
  process.map(kHost, 512 * kMiB);
  SparseBytes elsewhere;
  FakeLinux guest(elsewhere, at_start, kImage, 512 * kMiB);
  // Only the text lies in this process: there is no kernel where it says.
  std::array<std::byte, 4096> text;
  const CopyPart part{at_start(0x50'0000), text};
  ASSERT_TRUE(elsewhere.read(std::span(&part, 1)));
  ASSERT_TRUE(process.bytes->write(at_start(0x50'0000), text));

  expect_refused(process, "whose page tables say something else");
}

TEST(GuestRam, MoreThanTheProcessHasIsNotBelieved) {
  Process process;
  process.map(kHost, 512 * kMiB);
  FakeLinux guest(*process.bytes, at_start, kImage, 512 * kMiB);
  guest.set_end(kGiB / 4096);
  expect_refused(process, "no memory of the process fits 1024 MiB");
  guest.set_end(0);
  expect_refused(process, "its kernel counts 0 pages");
  guest.set_end(UINT64_MAX);
  expect_refused(process, "its kernel counts 18446744073709551615 pages");
}

TEST(GuestRam, TasksThatDoNotPointBackProveNothing) {
  Process process;
  process.map(kHost, 512 * kMiB);
  FakeLinux guest(*process.bytes, at_start, kImage, 512 * kMiB);
  guest.put64(guest.spread(20)[7] + 8, FakeLinux::kDirectMap);

  expect_refused(process, "no list of its tasks closes");
}

TEST(GuestRam, ListsWithoutAnEndTakeBoundedTime) {
  Process process;
  process.map(kHost, 512 * kMiB);
  FakeLinux guest(*process.bytes, at_start, kImage, 512 * kMiB);
  // Every word of init_task leads into a ring that never comes back to it.
  const std::vector<std::uint64_t> ring = guest.spread(16);
  for (std::size_t i = 0; i < ring.size(); ++i) {
    guest.put64(ring[i], FakeLinux::kDirectMap + ring[(i + 1) % ring.size()]);
    guest.put64(ring[i] + 8, FakeLinux::kDirectMap + ring[(i + 15) % ring.size()]);
  }
  for (std::uint64_t at = 0; at < 0x2000; at += 8) {
    guest.put64(kImage + 0x3'0000 + at, FakeLinux::kDirectMap + ring[0]);
  }
  process.bytes->reads = 0;

  expect_refused(process, "no list of its tasks closes");

  EXPECT_LT(process.bytes->reads, 1'000'000u);
}

TEST(GuestRam, TheFirstMegabyteMustBeTheGuests) {
  Process process;
  process.map(kHost, 512 * kMiB);
  FakeLinux guest(*process.bytes, at_start, kImage, 512 * kMiB);
  guest.put64(0x9'f000 + 511 * 8, 0x1234'5021);
  expect_refused(process, "the page tables of the real-mode code at 0x9c000 are not");
  guest.write_real_mode(0x9'c000);
  ASSERT_TRUE(find_guest_ram(process.candidates).has_value());
  guest.write_real_mode(0x20'0000);
  expect_refused(process, "is not in the first megabyte");
}

TEST(GuestRam, SomethingMustLieAbove4GiB) {
  Process process;
  process.map(kHost, 6 * kGiB);
  FakeLinux guest(*process.bytes, at_pieces, kImage, 7 * kGiB);
  std::vector<std::uint64_t> low = guest.spread(40);
  std::erase_if(low, [](std::uint64_t at) { return at >= k4GiB; });
  guest.write_tasks(low);

  expect_refused(process, "nothing of the kernel's lies above 4 GiB");
}

TEST(RamCandidates, AreLargeAndWritableJoinedAndNot) {
  std::vector<MemoryMapping> mappings{
      mapping(0x1000'0000, 4 * kMiB),  mapping(0x1000'0000 + 4 * kMiB, 8 * kMiB),
      mapping(0x4000'0000, 4 * kMiB),  mapping(0x5000'0000, 16 * kMiB),
      mapping(0x6000'0000, 16 * kMiB), mapping(0x7000'0000, 64 * kMiB),
      mapping(kHost, 32 * kMiB),       mapping(kHost + 32 * kMiB, 32 * kMiB)};
  mappings[3].writable = false;
  mappings[4].name = "[heap]";
  mappings[5].end = UINT64_MAX & ~std::uint64_t{4095};  // beyond all addresses
  for (const std::size_t file : {6, 7}) {
    mappings[file].inode = 9;
    mappings[file].shared = true;
    mappings[file].offset = file == 6 ? 0 : 64 * kMiB;  // does not go on
  }

  const auto found = ram_candidates(mappings);

  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].size(), 32 * kMiB);
  EXPECT_EQ(found[1].size(), 32 * kMiB);
  EXPECT_EQ(found[2].begin, 0x1000'0000u);
  EXPECT_EQ(found[2].size(), 12 * kMiB);
  EXPECT_EQ(found[3].begin, 0x1000'0000u + 4 * kMiB);
  EXPECT_EQ(found[3].size(), 8 * kMiB);
}

TEST(RamCandidates, AreNotTooMany) {
  std::vector<MemoryMapping> mappings;
  for (std::uint64_t i = 0; i < 1000; ++i)
    mappings.push_back(mapping(kHost + i * kGiB, 8 * kMiB + i * 4096));

  const auto found = ram_candidates(mappings);

  ASSERT_EQ(found.size(), kMostCandidates);
  EXPECT_EQ(found[0].size(), 8 * kMiB + 999 * 4096);
}

}  // namespace
}  // namespace ringside::vmm
