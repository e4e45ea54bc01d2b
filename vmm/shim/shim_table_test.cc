// The table of trap points and the slots, with the code that lies in some of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <vector>

#include "vmm/shim/jump_record.h"
#include "vmm/shim/shim_channel_for_tests.h"

namespace ringside::vmm {
namespace {

using namespace shim_fakes;

class TableAndSlots : public ShimChannel {
 protected:
  using Entries = std::map<GuestVirt, std::uint64_t>;
  static std::uint64_t offset_of(GuestVirt slot) { return slot.offset_from(kBase); }
  std::span<std::uint32_t> words() {
    const auto slots = bytes().subspan(layout().slots, layout().slots_bytes);
    // SAFETY: aligned, and the region is words.
    return {reinterpret_cast<std::uint32_t*>(slots.data()), slots.size() / 4};
  }
  std::optional<GuestVirt> from(GuestVirt pc) const {
    const auto found = shim_.displaced_from(pc, 0);
    return found ? std::optional(found->from) : std::nullopt;
  }
  /// A disabled entry.
  static std::uint32_t place_of(GuestVirt address) {
    return static_cast<std::uint32_t>(address.raw()) << SHIM_ENTRY_SLOT_BITS;
  }
};

INSTANTIATE_TEST_SUITE_P(Every, TableAndSlots, kEveryReach, reach_name);

TEST_P(TableAndSlots, WritesTheTableThatTheShimReads) {
  EXPECT_EQ(region_.entries(), (Entries{{kText, offset_of(slot_)}}));
  EXPECT_FALSE(shim_.add_entry(kText, slot_)) << "once";
  EXPECT_FALSE(shim_.add_entry(GuestVirt(0x401000), slot_)) << "user addresses have no key";
  EXPECT_FALSE(shim_.add_entry(GuestVirt(kText.raw() + 1), kBase)) << "no slot";
  const GuestVirt table = kBase.wrapping_add(layout().slots + ShimSlots::kTableBytes - 1);
  EXPECT_FALSE(shim_.add_entry(GuestVirt(kText.raw() + 1), table));
  EXPECT_TRUE(shim_.add_entry(GuestVirt(0xffffffff80000000), slot_)) << "the lowest kernel text";
  EXPECT_FALSE(shim_.add_entry(GuestVirt(0xffffffff7fffffff), slot_));
}

TEST_P(TableAndSlots, ADisabledEntryIsEnabledWithAnotherSlotToo) {
  const auto other = shim_.allocate_slot(8);
  ASSERT_TRUE(other);

  shim_.disable_entry(kText);
  ASSERT_TRUE(shim_.add_entry(kText, *other));
  EXPECT_EQ(region_.entry_of(kText), 0u) << "an int3 there is the guest's";
  ASSERT_TRUE(shim_.enable_entries(std::array{kText}));

  EXPECT_EQ(region_.entry_of(kText), offset_of(*other));
  EXPECT_FALSE(shim_.add_entry(kText, slot_)) << "it is there";
  shim_.disable_entry(kText);
  EXPECT_EQ(region_.entry_of(kText), 0u);
}

TEST_P(TableAndSlots, ADisabledEntryGetsNoOtherSlotOnceTheGuestIsGone) {
  const auto other = shim_.allocate_slot(8);
  ASSERT_TRUE(other);
  shim_.disable_entry(kText);
  control().left = 1;

  const auto added = shim_.add_entry(kText, *other);

  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, ErrorCode::MachineGone);
}

TEST_P(TableAndSlots, ASlotOfWhoseTrapPointRecordsSaysSo) {
  const std::byte& list = bytes()[offset_of(slot_) - SHIM_SLOT_LIST];
  shim_.disable_entry(kText);

  ASSERT_TRUE(shim_.record_at(std::array{kText}));
  EXPECT_EQ(list, std::byte{SHIM_SLOT_RECORDS});
  ASSERT_TRUE(shim_.enable_entries(std::array{kText}));
  EXPECT_EQ(region_.entry_of(kText), offset_of(slot_));
  EXPECT_EQ(from(slot_), kText);
  shim_.disable_entry(kText);
  EXPECT_EQ(from(slot_), kText);

  ASSERT_TRUE(shim_.add_entry(kText, slot_));
  ASSERT_TRUE(shim_.enable_entries(std::array{kText}));
  EXPECT_EQ(list, std::byte{0}) << "who comes then asks anew";
}

TEST_P(TableAndSlots, NothingRecordsThatIsInUseOrUnknown) {
  const auto used = shim_.record_at(std::array{kText});
  const auto unknown = shim_.record_at(std::array{kText.wrapping_add(1)});

  ASSERT_FALSE(used || unknown);
  EXPECT_EQ(used.error().code, ErrorCode::Invalid);
  EXPECT_EQ(unknown.error().code, ErrorCode::Invalid);
  EXPECT_EQ(bytes()[offset_of(slot_) - SHIM_SLOT_LIST], std::byte{0}) << "it waits as before";
  EXPECT_TRUE(shim_.record_at({}));
}

TEST_P(TableAndSlots, EnablesManyEntriesAtOnceAndNoOther) {
  // Many on some pages, one on others, in several parts of the table.
  std::vector<GuestVirt> added, enabled;
  Entries expected{{kText, offset_of(slot_)}};
  for (std::uint64_t n = 1; n <= 1500; ++n) {
    added.push_back(kText.wrapping_add(n % 2 == 0 ? n : n * 0x1234'5));
    ASSERT_TRUE(shim_.add_entry(added.back(), slot_));
    if (n % 3 != 0) enabled.push_back(added.back());
  }
  for (const GuestVirt one : enabled) expected[one] = offset_of(slot_);
  EXPECT_EQ(region_.entries().size(), 1u) << "the guest sees none before";

  ASSERT_TRUE(shim_.enable_entries(enabled));
  EXPECT_EQ(region_.entries(), expected);
  ASSERT_TRUE(shim_.enable_entries(std::span(enabled).first(7))) << "a second time is no harm";
  EXPECT_EQ(region_.entries(), expected);

  for (const GuestVirt one : added) expected[one] = offset_of(slot_);
  ASSERT_TRUE(shim_.enable_entries(added)) << "now all of them";
  EXPECT_EQ(region_.entries(), expected);
  for (std::size_t n = 0; n < added.size(); n += 2) {
    shim_.disable_entry(added[n]);
    expected[added[n]] = 0;
  }
  EXPECT_EQ(region_.entries(), expected);
}

TEST_P(TableAndSlots, EnablesNothingThatItDoesNotKnow) {
  EXPECT_FALSE(shim_.enable_entries(std::array{kText.wrapping_add(1)}));
  const GuestVirt other = kText.wrapping_add(0x123);
  ASSERT_TRUE(shim_.add_entry(other, slot_) && shim_.enable_entries(std::array{other}));
  shim_.disable_entry(other);
  const auto word = std::ranges::find(words(), place_of(other));
  ASSERT_NE(word, words().end());
  *word = 0x1234;  // the guest's own page tables let it write there

  const auto enabled = shim_.enable_entries(std::array{other});

  ASSERT_FALSE(enabled);
  EXPECT_EQ(enabled.error().code, ErrorCode::MachineGone);
  EXPECT_EQ(*word, 0x1234u);
}

TEST_P(TableAndSlots, ADisabledEntryKeepsItsPlaceWithoutASlot) {
  shim_.disable_entry(GuestVirt(kText.raw() + 1));
  EXPECT_NE(region_.entry_of(kText), 0u) << "another address";
  shim_.disable_entry(kText);

  EXPECT_EQ(region_.entry_of(kText), 0u);
  raise(0, kText);  // it looked its slot up before
  EXPECT_EQ(shim_.poll(handlers_), 1u);
  EXPECT_TRUE(region_.is_answered(0));
}

TEST_P(TableAndSlots, TakesEntriesUntilThereIsNoRoomAndHasRoomForThose) {
  std::vector<GuestVirt> added;
  Result<void> result;
  while (true) {
    const GuestVirt next(kText.raw() + 1 + 3 * added.size());
    result = shim_.add_entry(next, slot_);
    if (!result) break;
    added.push_back(next);
  }

  EXPECT_EQ(result.error().code, ErrorCode::Limit);
  EXPECT_GT(added.size(), layout().slots_bytes / 6);
  EXPECT_FALSE(shim_.allocate_slot(8)) << "the room is theirs";
  EXPECT_TRUE(shim_.add_entry(added[0], slot_)) << "it has its room";
  ASSERT_TRUE(shim_.enable_entries(added));
  EXPECT_EQ(region_.entries().size(), added.size() + 1);
}

TEST_P(TableAndSlots, AnErrorForWantOfRoomChangesNothing) {
  std::vector<GuestVirt> added;
  for (std::uint64_t n = 1; shim_.add_entry(GuestVirt(kText.raw() + n), slot_); ++n) {
    added.push_back(GuestVirt(kText.raw() + n));
  }
  // Of pages that are not enabled together, the second blocks find no room; there are entries that
  // would only have to be changed, too.
  std::vector<GuestVirt> even, odd{kText};
  for (const GuestVirt at : added) (at.raw() % 2 == 0 ? even : odd).push_back(at);
  ASSERT_TRUE(shim_.enable_entries(even));
  shim_.disable_entry(kText);
  const Entries before = region_.entries();

  for (int n = 0; n < 3; ++n) {
    const auto enabled = shim_.enable_entries(odd);
    ASSERT_FALSE(enabled);
    EXPECT_EQ(enabled.error().code, ErrorCode::Limit);
    EXPECT_EQ(region_.entries(), before);
    EXPECT_LE(shim_.slot_room(), layout().slots_bytes);
  }
  ASSERT_TRUE(shim_.enable_entries(std::array{kText}));
  EXPECT_EQ(region_.entry_of(kText), offset_of(slot_));
}

TEST_P(TableAndSlots, HandsOutSlotsUntilTheyAreUsedUp) {
  const auto next = shim_.allocate_slot(9);
  ASSERT_TRUE(next);
  EXPECT_GE(next->raw(), slot_.raw() + 8 + SlotHeader::kBytes);
  const std::byte code[9] = {std::byte{0x90}};
  ASSERT_TRUE(shim_.write_slot(*next, code, {std::byte{0x55}, 2}));
  const auto written = bytes().subspan(offset_of(*next) - SlotHeader::kBytes).first(4);
  EXPECT_TRUE(std::ranges::equal(
      written, std::array{std::byte{0}, std::byte{2}, std::byte{0x55}, std::byte{0x90}}));
  EXPECT_FALSE(shim_.write_slot(GuestVirt(next->raw() + 1), code)) << "past what was given out";
  EXPECT_FALSE(shim_.write_slot(GuestVirt(kBase.raw()), code)) << "the shim's own code";

  ASSERT_TRUE(shim_.allocate_slot(shim_.slot_room() - SlotHeader::kBytes));
  EXPECT_EQ(shim_.slot_room(), 0u);
  const auto none = shim_.allocate_slot(1);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::Limit);
  EXPECT_EQ(none.error().message,
            "the " + std::to_string(layout().slots_bytes / 1024) +
                " KiB for displaced instructions are used up: enable fewer probes");
}

TEST_P(TableAndSlots, KnowsWhichTrapPointASlotIsOf) {
  const GuestVirt other(kText.raw() + 0x77);
  const auto slot = shim_.allocate_slot(12), of_none = shim_.allocate_slot(20);
  ASSERT_TRUE(slot && of_none);
  ASSERT_TRUE(shim_.add_entry(other, GuestVirt(slot->raw() + 1)));

  EXPECT_EQ(from(slot_), kText);
  EXPECT_EQ(from(GuestVirt(slot_.raw() + 7)), kText) << "to its end";
  EXPECT_EQ(from(*slot), other);
  EXPECT_EQ(from(GuestVirt(slot->raw() + 11)), other);
  EXPECT_FALSE(from(*of_none)) << "it has no entry";
  EXPECT_FALSE(from(kBase)) << "the shim's own code";
  EXPECT_FALSE(from(kText));
  ASSERT_TRUE(shim_.add_entry(other.wrapping_add(1), GuestVirt(slot->raw() + 1)));
  EXPECT_FALSE(from(*slot)) << "two share it";
}

TEST_P(TableAndSlots, KnowsWhichTrapPointAJumpsRecordIsOf) {
  const GuestVirt jumps(kText.raw() + 0x40);
  const auto place = shim_.allocate_slot(JumpRecord::kBytes + 9);
  ASSERT_TRUE(place);
  const JumpRecord record{.address = jumps, .replaced = {}};
  ASSERT_TRUE(shim_.write_slot(*place, record.encode(*place, *shim_.jump_entry())));

  EXPECT_EQ(from(GuestVirt(place->raw() + JumpRecord::kEntry)), jumps);
  EXPECT_EQ(from(GuestVirt(place->raw() + JumpRecord::kBytes + 8)), jumps);
}

TEST_P(TableAndSlots, AnAddressThatIsNoTrapPointIsNoNoticeOfKexec) {
  raise(0, GuestVirt(0));

  EXPECT_EQ(shim_.poll(handlers_), 1u);

  EXPECT_EQ(shim_.state(), ShimState::There);
}

}  // namespace
}  // namespace ringside::vmm
