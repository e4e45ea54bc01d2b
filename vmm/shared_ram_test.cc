#include "vmm/shared_ram.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace ringside::vmm {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kGiB = 1 << 30;

TEST(CheckRamSize, RefusesWhatCannotWork) {
  EXPECT_TRUE(check_ram_size(256 * kMiB, 8 * kGiB, 256 * kMiB));
  EXPECT_TRUE(check_ram_size(8 * kGiB, 8 * kGiB, 256 * kMiB));
  EXPECT_FALSE(check_ram_size(255 * kMiB, 8 * kGiB, 256 * kMiB));
  EXPECT_FALSE(check_ram_size(0, 8 * kGiB, 256 * kMiB));
  EXPECT_FALSE(check_ram_size(256 * kMiB + 1, 8 * kGiB, 256 * kMiB));
  const auto large = check_ram_size(9 * kGiB, 8 * kGiB, 256 * kMiB);
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().message,
            "a guest with 9216 MiB of memory does not fit: this host has 8192 MiB; give a smaller "
            "--memory");
}

TEST(SharedRam, IsAnInheritableFileBehindGuestMemory) {
  auto ram = SharedRam::create(256 * kMiB);
  ASSERT_TRUE(ram);
  const RamPiece piece{GuestPhys(0), 0, 256 * kMiB};
  GuestMemory memory = ram->guest_memory(std::span(&piece, 1));
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

TEST(SharedRam, KeepsItsSizeWhoeverHasItOpen) {
  auto ram = SharedRam::create(256 * kMiB);
  ASSERT_TRUE(ram);
  // As QEMU does it.
  const UniqueFd theirs(open(fmt::format("/proc/self/fd/{}", ram->fd()).c_str(), O_RDWR));
  ASSERT_TRUE(theirs);

  for (const off_t size : {off_t{0}, off_t{4096}, off_t{257 * kMiB}}) {
    EXPECT_EQ(ftruncate(theirs.get(), size), -1) << size;
    EXPECT_EQ(errno, EPERM);
  }
  EXPECT_EQ(fcntl(theirs.get(), F_ADD_SEALS, F_SEAL_WRITE), -1) << "or the guest could not write";

  std::byte last{};
  const RamPiece piece{GuestPhys(0), 0, 256 * kMiB};
  EXPECT_TRUE(
      ram->guest_memory(std::span(&piece, 1)).read(GuestPhys(256 * kMiB - 1), std::span(&last, 1)));
}

TEST(SharedRam, SaysWhenThereIsNoRoom) {
  EXPECT_FALSE(SharedRam::create(std::uint64_t{1} << 60));
}

}  // namespace
}  // namespace ringside::vmm
