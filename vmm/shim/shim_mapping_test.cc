#include "vmm/shim/shim_mapping.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "vmm/shim/fake_guest_for_tests.h"
#include "vmm/shim/shim.h"

namespace ringside::vmm {
namespace {

using namespace shim_fakes;

TEST(ShimMapping, TouchesNothingBesideItsPlace) {
  constexpr std::uint64_t kAround = 64 << 10;
  for (const bool isolated : {false, true}) {
    FakeGuest guest;
    if (isolated) guest.isolate();
    const auto before = guest.ram().subspan(kLow.base.raw() - kAround, kAround);
    const auto behind = guest.ram().subspan(kLow.base.raw() + kLow.size, kAround);
    std::ranges::fill(before, std::byte{0x5a});
    std::ranges::fill(behind, std::byte{0x5a});

    auto shim = install(guest, isolated ? isolated_facts() : facts(), kLow);

    ASSERT_TRUE(shim) << shim.error().message;
    const auto is_untouched = [](std::byte byte) { return byte == std::byte{0x5a}; };
    EXPECT_TRUE(std::ranges::all_of(before, is_untouched));
    EXPECT_TRUE(std::ranges::all_of(behind, is_untouched));
    auto paused = PausedMachine::pause(guest);
    ASSERT_TRUE(paused && (*shim)->retire(*paused) && (*shim)->remove(*paused));
    EXPECT_TRUE(std::ranges::all_of(before, is_untouched));
    EXPECT_TRUE(std::ranges::all_of(behind, is_untouched));
  }
}

TEST(ShimMapping, GoesBehindARunThatIsOneEntryTooShort) {
  FakeGuest guest;
  guest.isolate();
  guest.put64(kUserPmd.raw() + 8 * 9, 0x83);
  guest.put64(kPmd.raw() + 8 * 17, 0x83);  // the run from 10 on has seven

  ASSERT_TRUE(install(guest, isolated_facts()));

  EXPECT_EQ(guest.pmd(10), 0u);
  EXPECT_EQ(guest.pmd(18), guest.user_pmd(18));
  EXPECT_EQ(guest.pmd(18) & 0xfffffffff000, kPlace.raw());
}

TEST(ShimMapping, FillsARunThatIsJustLongEnough) {
  FakeGuest guest;
  for (unsigned i = 9; i < 512; ++i) {
    if (i < 20 || i > 27) guest.put64(kPmd.raw() + 8 * i, 0x83);
  }

  ASSERT_TRUE(install(guest));

  EXPECT_EQ(guest.pmd(20) & 0xfffffffff000, kPlace.raw());
  EXPECT_EQ(guest.pmd(0), 0u) << "behind the image where it can";
}

TEST(ShimMapping, RefusesAnImageRegionThatMakesNoSense) {
  FakeGuest guest;
  const auto with = [&guest](std::uint64_t start, std::uint64_t end, std::uint64_t image_end) {
    ShimKernelFacts wrong = facts();
    wrong.image_region_start = GuestVirt(start);
    wrong.image_region_end = GuestVirt(end);
    wrong.image_end = GuestVirt(image_end);
    const auto shim = install(guest, wrong);
    ASSERT_FALSE(shim);
    EXPECT_NE(shim.error().message.find("makes no sense"), std::string::npos);
  };
  const ShimKernelFacts right = facts();
  const std::uint64_t start = right.image_region_start.raw(), end = right.image_region_end.raw(),
                      image_end = right.image_end.raw();
  with(start + 0x1000, end, image_end);
  with(start, start, image_end);
  with(end, start, image_end);
  with(start, end, start - 2 * kMiB);
  with(0xfffffffe00000000, 0xffffffff00200000, 0xfffffffe00200000);  // more than 4 GiB
}

}  // namespace
}  // namespace ringside::vmm
