#include "vmm/kvm/boot/layout.h"

#include <gtest/gtest.h>

namespace ringside::vmm::kvm {
namespace {

TEST(Layout, RamThatFitsBelowTheHoleIsOnePiece) {
  const auto pieces = place_ram(kHoleStart);

  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].base.raw(), 0u);
  EXPECT_EQ(pieces[0].size, kHoleStart);
}

TEST(Layout, RamBeyondTheHoleGoesOnAt4GiB) {
  const auto pieces = place_ram(kHoleStart + 4096);

  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[1].base.raw(), kHighRam);
  EXPECT_EQ(pieces[1].file_offset, kHoleStart);
  EXPECT_EQ(pieces[1].size, 4096u);
}

TEST(Layout, TheGuestIsToldOfAllRamButTheShimsAndTheFirstMegabytesHoles) {
  const std::uint64_t size = 5ull << 30;
  std::uint64_t ram = 0, last_end = 0;
  bool shim_reserved = false;

  for (const E820Entry& entry : memory_map(size)) {
    EXPECT_GE(entry.base, last_end) << "entries overlap or are out of order";
    last_end = entry.base + entry.size;
    if (entry.type == E820Type::Ram) ram += entry.size;
    shim_reserved |= entry.type == E820Type::Reserved && entry.base == kShimMemory.base.raw() &&
                     entry.size == kShimMemory.size;
  }

  EXPECT_EQ(ram, size - kShimMemory.size - (kAcpiEnd - kLowRamEnd));
  EXPECT_TRUE(shim_reserved);
  EXPECT_EQ(last_end, kHighRam + size - kHoleStart);
}

TEST(Layout, AMachineTooSmallForTheShimReservesNothingForIt) {
  const std::uint64_t size = 64 << 20;

  const auto map = memory_map(size);

  EXPECT_FALSE(shim_memory(size).has_value());
  EXPECT_EQ(map.back().base, kAcpiEnd);
  EXPECT_EQ(map.back().size, size - kAcpiEnd);
  EXPECT_TRUE(shim_memory(kShimMemory.base.raw() + kShimMemory.size).has_value());
}

}  // namespace
}  // namespace ringside::vmm::kvm
