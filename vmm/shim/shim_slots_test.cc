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
  explicit SlotsAlone(std::vector<OccupiedSlots> occupied = {},
                      GuestMemory::Extent place = {GuestPhys(0x21000), 400 << 10})
      : region_(Reach::Mapped, place),
        shared_(region_.memory(), layout().place, layout().bytes, layout().data),
        presence_(shared_, layout(), kSlotsBase, PlainRegion::gate()),
        slots(shared_, presence_, layout(), kSlotsBase, std::move(occupied)) {}

  const ShimLayout& layout() const { return region_.layout(); }
  /// From the first place behind the table on, where a slot's header lies.
  std::uint64_t allocate(std::size_t size) {
    return slots.allocate(size)->offset_from(kSlotsBase) - SlotHeader::kBytes - begin();
  }
  std::uint64_t begin() const { return layout().slots + ShimSlots::kTableBytes; }
  static OccupiedSlots behind_table(std::uint64_t begin, std::uint64_t end) {
    return {ShimSlots::kTableBytes + begin, ShimSlots::kTableBytes + end};
  }

 private:
  PlainRegion region_;
  ShimRegion shared_;
  ShimPresence presence_;

 public:
  ShimSlots slots;
};

TEST(ShimSlots, LeaveOutWhatSomebodyIsInsideOf) {
  const auto part = SlotsAlone::behind_table;
  SlotsAlone alone({part(0, 10), part(20, 30), part(35, 40)});

  EXPECT_EQ(alone.allocate(7), 10u);
  EXPECT_EQ(alone.allocate(2), 30u) << "between two";
  EXPECT_EQ(alone.allocate(3), 40u);
  EXPECT_EQ(alone.slots.used_bytes(), ShimSlots::kTableBytes + 46);
}

TEST(ShimSlots, AreUsedUpToTheLastOccupiedByte) {
  SlotsAlone alone({SlotsAlone::behind_table(100, 164)});

  EXPECT_EQ(alone.allocate(8), 0u);

  EXPECT_EQ(alone.slots.used_bytes(), ShimSlots::kTableBytes + 164)
      << "else they would be left behind";
}

TEST(ShimSlots, BeginFromTheFirstToTheLastThatWasHandedOut) {
  SlotsAlone alone;
  const std::uint64_t first = alone.slots.allocate(8)->offset_from(kSlotsBase),
                      second = alone.slots.allocate(4)->offset_from(kSlotsBase);

  EXPECT_TRUE(alone.slots.may_begin_at(first) && alone.slots.may_begin_at(second + 3));
  EXPECT_FALSE(alone.slots.may_begin_at(second + 4));
  EXPECT_FALSE(alone.slots.may_begin_at(first - 1));
}

TEST(ShimSlots, OfALargeRegionBeginAtWholeUnits) {
  SlotsAlone alone({}, {GuestPhys(2 << 20), kLargeShimBytes});
  const std::uint64_t unit = std::uint64_t{1} << alone.layout().unit_shift;
  ASSERT_GT(unit, 1u);
  for (const std::size_t size : {1, 31, 32, 33}) {
    const std::uint64_t slot = alone.slots.allocate(size)->offset_from(kSlotsBase);
    EXPECT_EQ((slot - alone.layout().slots) % unit, 0u);
    EXPECT_TRUE(alone.slots.may_begin_at(slot));
    EXPECT_FALSE(alone.slots.may_begin_at(slot + 1));
    EXPECT_EQ((*alone.slots.allocate_block(size) - alone.layout().slots) % (8 * unit), 0u);
  }
}

TEST(ShimSlots, GiveNobodyElseWhatIsReserved) {
  SlotsAlone alone;
  const std::uint64_t all = alone.slots.room();
  alone.slots.reserve(100);

  EXPECT_EQ(alone.slots.room(), all - 100);
  ASSERT_TRUE(alone.slots.allocate(all - 100 - SlotHeader::kBytes));
  EXPECT_FALSE(alone.slots.allocate(1));
  EXPECT_FALSE(alone.slots.allocate_block(80));
  EXPECT_TRUE(alone.slots.allocate_block(80, 100));
}

TEST(ShimSlots, LieAroundTheAddressesInThem) {
  SlotsAlone alone;
  const std::uint64_t begin = alone.begin();
  EXPECT_FALSE(alone.slots.slot_at(begin)) << "there is none yet";
  (void)alone.allocate(8);
  (void)alone.allocate(4);

  const auto first = alone.slots.slot_at(begin + 10), last = alone.slots.slot_at(begin + 11);

  ASSERT_TRUE(first && last);
  EXPECT_EQ(first->begin, begin);
  EXPECT_EQ(first->end, begin + 11);
  EXPECT_EQ(last->begin, begin + 11);
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
    EXPECT_TRUE(alone.slots.may_begin_at(*words + 23)) << "all of them";
  }
}

}  // namespace
}  // namespace ringside::vmm
