#include "vmm/kvm/api/kvm_vm.h"

#include <gtest/gtest.h>

#include "vmm/arch/arch.h"
#include "vmm/kvm/boot/layout.h"

namespace ringside::vmm::kvm {
namespace {

TEST(RamSlots, APageLiesWhereItsPieceOfRamIs) {
  constexpr std::uint64_t kSize = 8ull << 30;  // more than there is room for below the hole
  const auto pieces = place_ram(kSize);
  ASSERT_EQ(pieces.size(), 2u);

  const RamSlots slots(kSize);

  EXPECT_EQ(slots.page(0, 0), GuestPhys(0));
  EXPECT_EQ(slots.page(0, 3), GuestPhys(3 * arch::kPageSize));
  EXPECT_EQ(slots.page(1, 1), GuestPhys(pieces[1].base.raw() + arch::kPageSize));
}

TEST(RamSlots, APageOutsideRamIsNone) {
  const RamSlots slots(16 << 20);

  EXPECT_TRUE(slots.page(0, (16 << 20) / arch::kPageSize - 1));
  EXPECT_FALSE(slots.page(0, (16 << 20) / arch::kPageSize));
  EXPECT_FALSE(slots.page(0, UINT64_MAX));
  EXPECT_FALSE(slots.page(1, 0));
}

}  // namespace
}  // namespace ringside::vmm::kvm
