#include "vmm/kvm/boot/placement.h"

#include <gtest/gtest.h>

#include "vmm/kvm/boot/layout.h"

namespace ringside::vmm::kvm {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

KernelRoom piece_at(std::uint64_t base, std::uint64_t size) {
  KernelRoom room;
  room.pieces = {{GuestPhys(base), size}};
  return room;
}

std::string refusal(const KernelRoom& room, std::uint64_t initrd, std::uint64_t ram) {
  const auto placement = place_kernel(room, initrd, ram, "k");
  return placement ? std::string() : placement.error().message;
}

TEST(Placement, TheInitrdGoesToTheTopOfRamOnAPage) {
  const auto placement = place_kernel(piece_at(16 * kMiB, 8 * kMiB), 5000, 512 * kMiB, "k");

  ASSERT_TRUE(placement.has_value());
  EXPECT_EQ(placement->kernel.raw(), 16 * kMiB);
  EXPECT_EQ(placement->initrd.raw(), 512 * kMiB - 8192);
}

TEST(Placement, TheInitrdStaysBelowTheHoleAndBelowTheKernelsLimit) {
  KernelRoom room = piece_at(16 * kMiB, 8 * kMiB);

  EXPECT_EQ(place_kernel(room, 4096, 8192 * kMiB, "k")->initrd.raw(), kHoleStart - 4096);
  room.initrd_end = 0x3800'0000;
  EXPECT_EQ(place_kernel(room, 4096, 8192 * kMiB, "k")->initrd.raw(), 0x3800'0000u - 4096);
}

TEST(Placement, TheInitrdLeavesTheShimsMemoryAlone) {
  const std::uint64_t shim = kShimMemory.base.raw();
  // 16 MiB above it, of which the initrd needs more.
  const auto placement = place_kernel(piece_at(16 * kMiB, 8 * kMiB), 17 * kMiB, 128 * kMiB, "k");

  ASSERT_TRUE(placement.has_value());
  EXPECT_EQ(placement->initrd.raw(), shim - 17 * kMiB);
}

TEST(Placement, AKernelThatMayMoveGoesWhereThereIsRoom) {
  KernelRoom room = piece_at(16 * kMiB, 90 * kMiB);  // would touch the shim's memory
  room.alignment = 2 * kMiB;

  const auto placement = place_kernel(room, 0, 512 * kMiB, "k");

  ASSERT_TRUE(placement.has_value());
  EXPECT_EQ(placement->kernel.raw(), 2 * kMiB) << "94 MiB are free from 2 MiB on";
}

TEST(Placement, SegmentsWhereNoKernelMayBeAreRefused) {
  EXPECT_EQ(refusal(piece_at(0x8000, 0x1000), 0, 512 * kMiB),
            "k: a segment at 0x8000 of 0x1000 bytes lies below 0x100000, where boot parameters "
            "are: link the kernel higher");
  EXPECT_EQ(refusal(piece_at(kHoleStart - 1, 2), 0, 8192 * kMiB),
            "k: a segment at 0xbfffffff of 0x2 bytes goes beyond 3 GiB, where no RAM is: link the "
            "kernel lower");
  EXPECT_NE(refusal(piece_at(0x200000, UINT64_MAX), 0, 512 * kMiB), "");
  EXPECT_EQ(refusal(piece_at(kShimMemory.base.raw() - 1, 2), 0, 512 * kMiB),
            "k: a segment at 0x5ffffff of 0x2 bytes touches 0x6000000 to 0x7000000, which tracing "
            "needs: link it elsewhere");
}

TEST(Placement, TooLittleMemorySaysHowMuchWouldDo) {
  const KernelRoom room = piece_at(16 * kMiB, 60 * kMiB);

  EXPECT_EQ(refusal(room, 300 * kMiB, 256 * kMiB),
            "k: no room for the kernel (60 MiB) and the initrd (300 MiB) in 256 MiB of RAM: give "
            "--memory 448m or more");
  EXPECT_TRUE(place_kernel(room, 300 * kMiB, 448 * kMiB, "k").has_value());
  EXPECT_FALSE(place_kernel(room, 300 * kMiB, 384 * kMiB, "k").has_value());
  EXPECT_EQ(refusal(piece_at(0x0a00'0000, kMiB), 0, 128 * kMiB),
            "k: no room for the kernel (1 MiB) and the initrd (0 MiB) in 128 MiB of RAM: give "
            "--memory 256m or more");
}

TEST(Placement, WhatNoMachineHasRoomForIsALimitWithoutAWayOut) {
  EXPECT_EQ(refusal(piece_at(16 * kMiB, kMiB), 3072 * kMiB, 512 * kMiB),
            "k: no room for the kernel (1 MiB) and the initrd (3072 MiB) below 3 GiB, however much "
            "RAM there is");
}

TEST(Placement, AMachineWithoutRamHasNoRoom) {
  EXPECT_NE(refusal(piece_at(16 * kMiB, kMiB), 0, 0), "");
  EXPECT_NE(refusal(piece_at(16 * kMiB, kMiB), 0, 4096), "");
}

}  // namespace
}  // namespace ringside::vmm::kvm
