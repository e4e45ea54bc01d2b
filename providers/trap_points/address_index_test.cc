#include "providers/trap_points/address_index.h"

#include <gtest/gtest.h>

namespace ringside::providers {
namespace {

TEST(AddressIndex, FindsEachOfManyAndNoOther) {
  AddressIndex index;
  EXPECT_FALSE(index.find(GuestVirt(0)));
  constexpr std::uint32_t kMany = 5000;
  const auto address = [](std::uint32_t n) { return GuestVirt(0xffffffff81000000 + 16ull * n); };
  for (std::uint32_t n = 0; n < kMany; ++n) {
    EXPECT_FALSE(index.find(address(n)));
    index.insert(address(n), n);
    EXPECT_EQ(index.find(address(n)), n);
  }

  for (std::uint32_t n = 0; n < kMany; ++n) {
    ASSERT_EQ(index.find(address(n)), n);
    ASSERT_FALSE(index.find(address(n).wrapping_add(1)));
  }
  EXPECT_FALSE(index.find(address(kMany)));
}

TEST(AddressIndex, KeepsAnyValueBelowItsOwnMark) {
  AddressIndex index;
  index.insert(GuestVirt(0), 0xfffffffe);
  index.insert(GuestVirt(~std::uint64_t{0}), 0);

  EXPECT_EQ(index.find(GuestVirt(0)), 0xfffffffeu);
  EXPECT_EQ(index.find(GuestVirt(~std::uint64_t{0})), 0u);
}

}  // namespace
}  // namespace ringside::providers
