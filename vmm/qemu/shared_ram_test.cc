#include "vmm/qemu/shared_ram.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

namespace ringside::vmm {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kGiB = 1 << 30;

TEST(PlaceRam, SplitsAtThreeGibFromThreeAndAHalfOn) {
  for (const std::uint64_t size : {256 * kMiB, 3 * kGiB, 0xe000'0000 - kMiB}) {
    const auto pieces = place_ram(size);
    ASSERT_EQ(pieces.size(), 1u) << size;
    EXPECT_EQ(pieces[0].size, size);
  }
  for (const std::uint64_t size : {std::uint64_t{0xe000'0000}, 4 * kGiB, 64 * kGiB}) {
    const auto pieces = place_ram(size);
    ASSERT_EQ(pieces.size(), 2u) << size;
    EXPECT_EQ(pieces[0].base.raw(), 0u);
    EXPECT_EQ(pieces[0].file_offset, 0u);
    EXPECT_EQ(pieces[0].size, 3 * kGiB);
    EXPECT_EQ(pieces[1].base.raw(), 4 * kGiB);
    EXPECT_EQ(pieces[1].file_offset, 3 * kGiB);
    EXPECT_EQ(pieces[1].size, size - 3 * kGiB);
  }
}

TEST(CheckRamSize, RefusesWhatCannotWork) {
  EXPECT_TRUE(check_ram_size(256 * kMiB, 8 * kGiB));
  EXPECT_TRUE(check_ram_size(8 * kGiB, 8 * kGiB));
  EXPECT_FALSE(check_ram_size(255 * kMiB, 8 * kGiB));
  EXPECT_FALSE(check_ram_size(0, 8 * kGiB));
  EXPECT_FALSE(check_ram_size(256 * kMiB + 1, 8 * kGiB));
  const auto large = check_ram_size(9 * kGiB, 8 * kGiB);
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().message,
            "a guest with 9216 MiB of memory does not fit: this host has 8192 MiB");
}

TEST(SharedRam, IsAnInheritableFileBehindGuestMemory) {
  auto ram = SharedRam::create(256 * kMiB);
  ASSERT_TRUE(ram);
  GuestMemory memory = ram->guest_memory();
  const std::array sent{std::byte{0x5a}};
  std::byte seen{};

  ASSERT_TRUE(memory.write(GuestPhys(0x1234), sent));

  EXPECT_EQ(pread(ram->fd(), &seen, 1, 0x1234), 1);
  EXPECT_EQ(seen, sent[0]);
  EXPECT_EQ(memory.size(), 256 * kMiB);
  ASSERT_EQ(memory.present_extents().size(), 1u);
  EXPECT_EQ(memory.present_extents()[0].base.raw(), 0x1000u);
  EXPECT_NE(fcntl(ram->fd(), F_GETFD) & FD_CLOEXEC, 0) << "only QEMU gets it";
}

TEST(SharedRam, SaysWhenThereIsNoRoom) {
  EXPECT_FALSE(SharedRam::create(std::uint64_t{1} << 60));
}

}  // namespace
}  // namespace ringside::vmm
