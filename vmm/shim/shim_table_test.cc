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

class TableAndSlots : public ShimChannel {};

INSTANTIATE_TEST_SUITE_P(Every, TableAndSlots, kEveryReach, reach_name);

TEST_P(TableAndSlots, WritesTheTableThatTheShimReads) {
  const std::uint64_t& entry = region_.entry(region_.bucket_of(kText));

  EXPECT_EQ(entry, (kText.raw() & 0xffffffff) | layout().slots << 32);
  EXPECT_FALSE(shim_.add_entry(kText, slot_)) << "once";
  EXPECT_FALSE(shim_.add_entry(GuestVirt(0x401000), slot_)) << "user addresses have no key";
  EXPECT_FALSE(shim_.add_entry(GuestVirt(kText.raw() + 1), kBase)) << "no slot";
  EXPECT_TRUE(shim_.add_entry(GuestVirt(0xffffffff80000000), slot_)) << "the lowest kernel text";
  EXPECT_FALSE(shim_.add_entry(GuestVirt(0xffffffff7fffffff), slot_));
}

TEST_P(TableAndSlots, ADisabledEntryIsEnabledWithAnotherSlotToo) {
  const std::uint64_t& entry = region_.entry(region_.bucket_of(kText));
  const auto other = shim_.allocate_slot(8);
  ASSERT_TRUE(other);

  shim_.disable_entry(kText);
  ASSERT_TRUE(shim_.add_entry(kText, *other));
  EXPECT_EQ(entry >> 32, 0u) << "an int3 there is the guest's";
  ASSERT_TRUE(shim_.enable_entries(std::array{kText}));

  EXPECT_EQ(entry >> 32, other->raw() - kBase.raw());
  EXPECT_FALSE(shim_.add_entry(kText, slot_)) << "it is there";
  shim_.disable_entry(kText);
  EXPECT_EQ(entry >> 32, 0u);
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

TEST_P(TableAndSlots, AnEntryThatRecordsSaysSoOnceItIsEnabled) {
  const std::uint64_t& entry = region_.entry(region_.bucket_of(kText));
  constexpr std::uint64_t kRecords = std::uint64_t{SHIM_ENTRY_RECORDS} << (32 + SHIM_SLOT_BITS);
  const std::uint64_t key = kText.raw() & 0xffffffff, slot = slot_.raw() - kBase.raw();
  shim_.disable_entry(kText);

  ASSERT_TRUE(shim_.record_at(std::array{kText}));
  EXPECT_EQ(entry, key) << "not yet";
  ASSERT_TRUE(shim_.enable_entries(std::array{kText}));
  EXPECT_EQ(entry, key | slot << 32 | kRecords);
  EXPECT_EQ(shim_.displaced_from(slot_), kText);
  shim_.disable_entry(kText);
  EXPECT_EQ(entry, key);
  EXPECT_EQ(shim_.displaced_from(slot_), kText);

  ASSERT_TRUE(shim_.add_entry(kText, slot_));
  ASSERT_TRUE(shim_.enable_entries(std::array{kText}));
  EXPECT_EQ(entry, key | slot << 32) << "who comes then asks anew";
}

TEST_P(TableAndSlots, NothingRecordsThatIsInUseOrUnknown) {
  const std::uint64_t& entry = region_.entry(region_.bucket_of(kText));
  const std::uint64_t before = entry;

  const auto used = shim_.record_at(std::array{kText});
  const auto unknown = shim_.record_at(std::array{kText.wrapping_add(1)});

  ASSERT_FALSE(used || unknown);
  EXPECT_EQ(used.error().code, ErrorCode::Invalid);
  EXPECT_EQ(unknown.error().code, ErrorCode::Invalid);
  ASSERT_TRUE(shim_.enable_entries(std::array{kText}));
  EXPECT_EQ(entry, before) << "it waits as before";
  EXPECT_TRUE(shim_.record_at({}));
}

TEST_P(TableAndSlots, EnablesManyEntriesAtOnceAndNoOther) {
  // Over several pages of the table, some of them neighbours.
  std::vector<GuestVirt> added, enabled;
  for (std::uint64_t n = 1; n <= 1500; ++n) {
    added.push_back(kText.wrapping_add(n % 2 == 0 ? n : n * 0x1234'5));
    ASSERT_TRUE(shim_.add_entry(added.back(), slot_));
    if (n % 3 != 0) enabled.push_back(added.back());
  }

  ASSERT_TRUE(shim_.enable_entries(enabled));
  ASSERT_TRUE(shim_.enable_entries(std::span(enabled).first(7))) << "a second time is no harm";

  std::map<std::uint64_t, std::uint64_t> entries;
  for (std::uint32_t bucket = 0; bucket < layout().table_entries; ++bucket) {
    const std::uint64_t entry = region_.entry(bucket);
    if (entry != 0) entries[entry & 0xffffffff] = entry >> 32;
  }
  EXPECT_EQ(entries.size(), added.size() + 1);
  for (std::size_t n = 0; n < added.size(); ++n) {
    const std::uint64_t slot = (n + 1) % 3 != 0 ? slot_.raw() - kBase.raw() : 0;
    EXPECT_EQ(entries.at(added[n].raw() & 0xffffffff), slot) << n;
  }
}

TEST_P(TableAndSlots, EnablesNothingThatItDoesNotKnow) {
  EXPECT_FALSE(shim_.enable_entries(std::array{kText.wrapping_add(1)}));
  region_.entry(region_.bucket_of(kText)) = 0x1234;  // the guest's own page tables let it write

  const auto enabled = shim_.enable_entries(std::array{kText});

  ASSERT_FALSE(enabled);
  EXPECT_EQ(enabled.error().code, ErrorCode::MachineGone);
  EXPECT_EQ(region_.entry(region_.bucket_of(kText)), 0x1234u);
}

TEST_P(TableAndSlots, ADisabledEntryKeepsItsPlaceWithoutASlot) {
  const std::uint64_t& entry = region_.entry(region_.bucket_of(kText));

  shim_.disable_entry(GuestVirt(kText.raw() + 1));
  EXPECT_NE(entry >> 32, 0u) << "another address";
  shim_.disable_entry(kText);

  EXPECT_EQ(entry, kText.raw() & 0xffffffff);
  raise(0, kText);  // it looked its slot up before
  EXPECT_EQ(shim_.poll(handlers_), 1u);
  EXPECT_TRUE(region_.is_answered(0));
}

TEST_P(TableAndSlots, FillsTheTableToItsLimitAndSaysSo) {
  Result<void> added;
  std::size_t count = 1;
  while ((added = shim_.add_entry(GuestVirt(kText.raw() + count), slot_))) ++count;

  EXPECT_EQ(count, layout().table_entries / 4 * 3);
  EXPECT_EQ(added.error().code, ErrorCode::Limit);
  EXPECT_TRUE(shim_.add_entry(GuestVirt(kText.raw() + 1), slot_)) << "it has its room";
}

TEST_P(TableAndSlots, HandsOutSlotsUntilTheyAreUsedUp) {
  const auto next = shim_.allocate_slot(9);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->raw(), slot_.raw() + 8);
  const std::byte code[9] = {std::byte{0x90}};
  ASSERT_TRUE(shim_.write_slot(*next, code));
  EXPECT_EQ(bytes()[layout().slots + 8], std::byte{0x90});
  EXPECT_FALSE(shim_.write_slot(GuestVirt(next->raw() + 1), code)) << "past what was given out";
  EXPECT_FALSE(shim_.write_slot(GuestVirt(kBase.raw()), code)) << "the shim's own code";

  ASSERT_TRUE(shim_.allocate_slot(layout().slots_bytes - 17));
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

  EXPECT_EQ(shim_.displaced_from(slot_), kText);
  EXPECT_EQ(shim_.displaced_from(GuestVirt(slot->raw() - 1)), kText) << "to its end";
  EXPECT_EQ(shim_.displaced_from(*slot), other);
  EXPECT_EQ(shim_.displaced_from(GuestVirt(slot->raw() + 11)), other);
  EXPECT_FALSE(shim_.displaced_from(*of_none)) << "it has no entry";
  EXPECT_FALSE(shim_.displaced_from(kBase)) << "the shim's own code";
  EXPECT_FALSE(shim_.displaced_from(kText));
}

TEST_P(TableAndSlots, KnowsWhichTrapPointAJumpsRecordIsOf) {
  const GuestVirt jumps(kText.raw() + 0x40);
  const auto place = shim_.allocate_slot(JumpRecord::kBytes + 9);
  ASSERT_TRUE(place);
  const JumpRecord record{.address = jumps, .replaced = {}};
  ASSERT_TRUE(shim_.write_slot(*place, record.encode(*place, *shim_.jump_entry())));

  EXPECT_EQ(shim_.displaced_from(GuestVirt(place->raw() + JumpRecord::kEntry)), jumps);
  EXPECT_EQ(shim_.displaced_from(GuestVirt(place->raw() + JumpRecord::kBytes + 8)), jumps);
}

TEST_P(TableAndSlots, AnEntryIsTheHostsAloneUntilItIsPublished) {
  ShimRegion shared(region_.memory(), layout().place, layout().bytes, layout().data);
  const ShimPresence presence(shared, layout(), kBase, PlainRegion::gate());
  ShimTable table(shared, presence, layout());
  const GuestVirt other(kText.raw() + 0x77);
  const std::uint64_t& shown = region_.entry(region_.bucket_of(other));

  const auto bucket = table.insert(other, layout().slots);

  ASSERT_TRUE(bucket && *bucket);
  EXPECT_EQ(**bucket, region_.bucket_of(other));
  EXPECT_TRUE(table.knows(other));
  EXPECT_EQ(shown, 0u);
  ASSERT_TRUE(table.publish(**bucket));
  EXPECT_EQ(shown, other.raw() & 0xffffffff) << "disabled";
  const auto again = table.insert(other, layout().slots + 8);
  ASSERT_TRUE(again);
  EXPECT_FALSE(*again) << "it has its bucket";
}

TEST_P(TableAndSlots, AnAddressThatIsNoTrapPointIsNoNoticeOfKexec) {
  raise(0, GuestVirt(0));

  EXPECT_EQ(shim_.poll(handlers_), 1u);

  EXPECT_EQ(shim_.state(), ShimState::There);
}

}  // namespace
}  // namespace ringside::vmm
