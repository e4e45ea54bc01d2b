#include "vmm/guest_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "vmm/base/unique_fd.h"

namespace ringside::vmm {
namespace {

std::vector<std::byte> filled(std::size_t size, int value) {
  return std::vector<std::byte>(size, std::byte(value));
}

TEST(GuestMemory, ReadsWhatWasWritten) {
  auto ram = filled(0x2000, 0);
  GuestMemory memory({{GuestPhys(0x1000), ram}});
  const std::array<std::byte, 3> sent{std::byte{1}, std::byte{2}, std::byte{3}};
  std::array<std::byte, 3> got{};

  ASSERT_TRUE(memory.write(GuestPhys(0x2ffd), sent));
  ASSERT_TRUE(memory.read(GuestPhys(0x2ffd), got));

  EXPECT_EQ(got, sent);
  EXPECT_EQ(ram[0x1ffd], std::byte{1});
}

TEST(GuestMemory, NoBytesCanAlwaysBeRead) {
  auto ram = filled(0x1000, 7);
  const GuestMemory memory({{GuestPhys(0x1000), ram}});

  EXPECT_TRUE(memory.read(GuestPhys(0x1000), {})) << "memcpy() must not see their null pointer";
  EXPECT_TRUE(memory.read(GuestPhys(0), {}));
}

TEST(GuestMemory, RefusesRangesThatLeaveRam) {
  auto ram = filled(0x1000, 7);
  GuestMemory memory({{GuestPhys(0x1000), ram}});
  std::array<std::byte, 8> out{};

  EXPECT_FALSE(memory.read(GuestPhys(0xfff), out));
  EXPECT_FALSE(memory.read(GuestPhys(0x1ff9), out));
  EXPECT_FALSE(memory.read(GuestPhys(0x2000), out));
  EXPECT_FALSE(memory.read(GuestPhys(UINT64_MAX - 3), out));
  EXPECT_FALSE(memory.write(GuestPhys(0x1ff9), out));
  EXPECT_EQ(ram[0xfff], std::byte{7}) << "a refused write must change nothing";
  EXPECT_TRUE(memory.mapping(GuestPhys(0x1ff9), 8).empty());
  EXPECT_TRUE(memory.read(GuestPhys(0x1ff8), out));
}

TEST(GuestMemory, ReadsAcrossNeighbouringRegions) {
  auto low = filled(0x1000, 1), high = filled(0x1000, 2);
  GuestMemory memory({{GuestPhys(0x1000), high}, {GuestPhys(0), low}});
  std::array<std::byte, 4> out{};

  ASSERT_TRUE(memory.read(GuestPhys(0xffe), out));
  ASSERT_TRUE(memory.write(GuestPhys(0xfff), std::array{std::byte{8}, std::byte{9}}));

  EXPECT_EQ(out, (std::array{std::byte{1}, std::byte{1}, std::byte{2}, std::byte{2}}));
  EXPECT_EQ(low[0xfff], std::byte{8});
  EXPECT_EQ(high[0], std::byte{9});
  EXPECT_TRUE(memory.mapping(GuestPhys(0xffe), 4).empty()) << "not one host range";
  EXPECT_EQ(memory.size(), 0x2000u);
}

TEST(GuestMemory, StopsAtAHoleBetweenRegions) {
  auto low = filled(0x1000, 1), high = filled(0x1000, 2);
  GuestMemory memory({{GuestPhys(0), low}, {GuestPhys(0x2000), high}});
  std::array<std::byte, 4> out{};

  EXPECT_FALSE(memory.read(GuestPhys(0xffe), out));
  EXPECT_FALSE(memory.read(GuestPhys(0x1000), out));
}

TEST(GuestMemory, LoadsAlignedEntriesOnly) {
  auto ram = filled(0x1000, 0);
  GuestMemory memory({{GuestPhys(0), ram}});

  ASSERT_TRUE(memory.store64(GuestPhys(0xff8), 0x1122334455667788));

  EXPECT_EQ(memory.load64(GuestPhys(0xff8)), 0x1122334455667788u);
  EXPECT_FALSE(memory.load64(GuestPhys(0xff4)));
  EXPECT_FALSE(memory.load64(GuestPhys(0x1000)));
  EXPECT_FALSE(memory.store64(GuestPhys(0xffc), 1));
}

TEST(GuestMemory, AnEmptyOneHoldsNothing) {
  const GuestMemory memory;
  std::byte out{};

  EXPECT_FALSE(memory.read(GuestPhys(0), std::span(&out, 1)));
  EXPECT_TRUE(memory.present_extents().empty());
}

TEST(GuestMemory, PresentExtentsAreTheWrittenPagesOfEachRegion) {
  constexpr std::size_t kSize = 64 << 12, kSplit = 32 << 12;
  const UniqueFd file(memfd_create("ram", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(file.get(), kSize), 0);
  void* mapping = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  ASSERT_NE(mapping, MAP_FAILED);
  const std::span<std::byte> all(static_cast<std::byte*>(mapping), kSize);
  const GuestMemory memory({{GuestPhys(0), all.first(kSplit), file.get(), 0},
                            {GuestPhys(0x1'0000'0000), all.subspan(kSplit), file.get(), kSplit}});

  all[0x3004] = std::byte{1};
  all[0x4000] = std::byte{1};
  all[kSplit + 0x2fff] = std::byte{1};
  const auto extents = memory.present_extents();

  ASSERT_EQ(extents.size(), 2u);
  EXPECT_EQ(extents[0].base.raw(), 0x3000u);
  EXPECT_EQ(extents[0].size, 0x2000u);
  EXPECT_EQ(extents[1].base.raw(), 0x1'0000'2000u);
  EXPECT_EQ(extents[1].size, 0x1000u);
  munmap(mapping, kSize);
}

TEST(GuestMemory, WithoutAFileAllOfRamIsPresent) {
  auto ram = filled(0x3000, 0);
  const GuestMemory memory({{GuestPhys(0x1000), ram}});

  const auto extents = memory.present_extents();

  ASSERT_EQ(extents.size(), 1u);
  EXPECT_EQ(extents[0].base.raw(), 0x1000u);
  EXPECT_EQ(extents[0].size, 0x3000u);
}

}  // namespace
}  // namespace ringside::vmm
