// Where the remains of a shim are looked for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>

#include "vmm/shim/fake_guest_for_tests.h"
#include "vmm/shim/shim_remains.h"

namespace ringside::vmm {
namespace {

using namespace shim_fakes;

/// Of a tracer that had a large place, and died.
class LargeRemains : public testing::Test {
 protected:
  LargeRemains() { EXPECT_TRUE(install(guest_)); }
  std::optional<ShimRemains> find(std::optional<GuestMemory::Extent> set_aside) {
    auto found = ShimRemains::find(guest_.memory(), facts(), set_aside);
    EXPECT_TRUE(found) << found.error().message;
    return found ? *found : std::nullopt;
  }
  void take_mapping_out() {
    guest_.set_gate(kHandler, 0x8e00);
    for (unsigned n = 9; n < 17; ++n) guest_.put64(kPmd.raw() + 8 * n, 0);
  }

  static constexpr GuestMemory::Extent kSet{kPlace, 16 * kMiB};
  FakeGuest guest_;
};

TEST_F(LargeRemains, AreFoundByTheirPageTables) {
  const auto found = find({});

  ASSERT_TRUE(found);
  EXPECT_EQ(found->extent().base, kPlace);
  EXPECT_EQ(found->extent().size, kSet.size);
  auto machine = PausedMachine::pause(guest_);
  ASSERT_TRUE(found->give_gate_back(*machine) && found->remove(*machine));
  EXPECT_FALSE(find(kSet));
}

TEST_F(LargeRemains, AreFoundWhereTheMachineHasSetMemoryAside) {
  take_mapping_out();
  auto clean = image_of(guest_);
  std::ranges::fill(std::span(clean).subspan(kPlace.raw(), kSet.size), std::byte{0});

  EXPECT_FALSE(find({})) << "nothing leads to it";
  EXPECT_FALSE(find(GuestMemory::Extent{GuestPhys(16 * kMiB), 16 * kMiB})) << "it is not there";
  EXPECT_FALSE(find(GuestMemory::Extent{kPlace, 4096})) << "nor is there room for one";
  const auto found = find(kSet);

  ASSERT_TRUE(found);
  EXPECT_TRUE(found->is_out_of_reach());
  auto machine = PausedMachine::pause(guest_);
  ASSERT_TRUE(found->remove(*machine));
  EXPECT_TRUE(image_of(guest_) == clean);
}

TEST(ShimRemains, AreFoundBelowTheImageToo) {
  FakeGuest guest;
  for (unsigned i = 9; i < 512; ++i) guest.put64(kPmd.raw() + 8 * i, 0x83);
  ASSERT_TRUE(install(guest));
  ASSERT_EQ(header_at(guest, kPlace).base, facts().image_region_start.raw());
  guest.set_gate(kHandler, 0x8e00);

  const auto found = ShimRemains::find(guest.memory(), facts());

  ASSERT_TRUE(found && *found);
  EXPECT_FALSE((*found)->is_out_of_reach());
}

}  // namespace
}  // namespace ringside::vmm
