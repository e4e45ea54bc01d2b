#include "vmm/shim/shim_slots.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "vmm/shim/plain_region_for_tests.h"

namespace ringside::vmm {
namespace {

constexpr GuestVirt kSlotsBase{0xffffffff9f000000};

/// Slots over plain memory, without the rest of a shim.
class SlotsAlone {
 public:
  explicit SlotsAlone(std::vector<OccupiedSlots> occupied = {})
      : shared_(region_.memory(), layout().place, layout().bytes, layout().data),
        presence_(shared_, layout(), kSlotsBase, PlainRegion::gate()),
        slots(shared_, presence_, layout(), kSlotsBase, std::move(occupied)) {}

  const ShimLayout& layout() const { return region_.layout(); }
  /// From the first slot on.
  std::uint64_t allocate(std::size_t size) {
    return slots.allocate(size)->offset_from(kSlotsBase) - layout().slots;
  }

 private:
  PlainRegion region_;
  ShimRegion shared_;
  ShimPresence presence_;

 public:
  ShimSlots slots;
};

TEST(ShimSlots, LeaveOutWhatSomebodyIsInsideOf) {
  SlotsAlone alone({{0, 10}, {20, 30}, {32, 40}});

  EXPECT_EQ(alone.allocate(10), 10u);
  EXPECT_EQ(alone.allocate(2), 30u) << "between two";
  EXPECT_EQ(alone.allocate(3), 40u);
  EXPECT_EQ(alone.slots.used_bytes(), 43u);
}

TEST(ShimSlots, AreUsedUpToTheLastOccupiedByte) {
  SlotsAlone alone({{100, 164}});

  EXPECT_EQ(alone.allocate(8), 0u);

  EXPECT_EQ(alone.slots.used_bytes(), 164u) << "else they would be left behind";
}

TEST(ShimSlots, AreHadFromTheFirstToTheLastThatWasHandedOut) {
  SlotsAlone alone;
  const GuestVirt first = *alone.slots.allocate(8), second = *alone.slots.allocate(4);

  EXPECT_TRUE(alone.slots.contains(first) && alone.slots.contains(second.wrapping_add(3)));
  EXPECT_FALSE(alone.slots.contains(second.wrapping_add(4)));
  EXPECT_FALSE(alone.slots.contains(first.wrapping_sub(1)));
}

TEST(ShimSlots, LieAroundTheAddressesInThem) {
  SlotsAlone alone;
  const std::uint64_t begin = alone.layout().slots;
  EXPECT_FALSE(alone.slots.slot_at(begin)) << "there is none yet";
  (void)alone.allocate(8);
  (void)alone.allocate(4);

  const auto first = alone.slots.slot_at(begin + 7), last = alone.slots.slot_at(begin + 9);

  ASSERT_TRUE(first && last);
  EXPECT_EQ(first->begin, begin);
  EXPECT_EQ(first->end, begin + 8);
  EXPECT_EQ(last->begin, begin + 8);
  EXPECT_EQ(last->end, alone.layout().bytes);
  EXPECT_FALSE(alone.slots.slot_at(begin - 1));
}

TEST(ShimSlots, WordsAreAlignedWhateverLiesBeforeThem) {
  SlotsAlone alone;

  for (const std::size_t odd : {1, 2, 7, 8}) {
    (void)alone.allocate(odd);
    const auto words = alone.slots.allocate_words(3);
    ASSERT_TRUE(words);
    EXPECT_EQ(*words % 8, 0u);
    EXPECT_TRUE(alone.slots.contains(kSlotsBase.wrapping_add(*words + 23)));
  }
}

}  // namespace
}  // namespace ringside::vmm
