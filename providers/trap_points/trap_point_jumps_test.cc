// Trap points that are jumps in an int3's stead: what stands there, and how they go again.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "providers/trap_points/jumps_for_tests.h"
#include "vmm/shim/jump_record.h"

namespace ringside::providers {
namespace {

using namespace trap_point_fakes;

TEST_F(Jumps, StandWhereWholeInstructionsGiveFiveBytes) {
  ASSERT_TRUE(add(at(0x005)));
  ASSERT_TRUE(add(at(0x00d)));  // ret: one byte, and what is behind it is no part of the function

  EXPECT_TRUE(arm_jumps());

  ASSERT_TRUE(armed_) << armed_.error().message;
  const auto entry = target(0x005);
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(table_.armed(), 2u);
  const GuestVirt place = entry->wrapping_add(-std::uint64_t{vmm::JumpRecord::kEntry});
  const auto& held = shim_.slots.at(place);
  vmm::JumpRecord::Bytes head;
  std::copy_n(held.begin(), head.size(), head.begin());
  const auto record = vmm::JumpRecord::decode(head, place, *shim_.entry_of_jumps);
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->address, at(0x005));
  EXPECT_EQ(record->replaced, original_);
  ASSERT_EQ(held.size(), head.size() + 1 + 7 + 5) << "push, lea, and one jump back";
  EXPECT_EQ(held[head.size()], std::byte{0x55});
  EXPECT_EQ(held[head.size() + 1], std::byte{0x48});
  EXPECT_EQ(held[head.size() + 8], std::byte{0xe9});
  ASSERT_EQ(asked_.size(), 2u);
  EXPECT_EQ(asked_[0].begin, at(0x006));
  EXPECT_EQ(asked_[0].end, at(0x00a));
  EXPECT_EQ(asked_[1].begin, kSlots);
  EXPECT_EQ(asked_[1].end, kSlots.wrapping_add(kSlotBytes));
}

TEST_F(Jumps, NeverStandWhereTheGuestLeavesForAnotherKernel) {
  for (const auto& [function, expected] :
       {std::pair("machine_kexec", std::byte{0xcc}), std::pair("other", std::byte{0xe9})}) {
    FakeMachine machine;
    KexecKernel kernel(machine, function);
    EXPECT_EQ(armed_in(machine, kernel, 0x145), expected) << function;
  }
}

TEST_F(Jumps, AreTakenBackWhole) {
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  ASSERT_TRUE(target(0x005));
  EXPECT_EQ(table_.jumps(), 1u);

  disarm();

  EXPECT_EQ(text_at(0x005), original_);
  EXPECT_EQ(table_.armed(), 0u);
  EXPECT_FALSE(table_.any_armed());
}

/// The kernel's int3 in the first byte of a jump would lead to a slot, and from there into the
/// middle of the jump.
TEST_F(Jumps, LeaveAnInt3InTheirFirstByteToTheGuest) {
  ASSERT_TRUE(add(at(0x005)));
  ASSERT_TRUE(add(at(0x00d)));
  arm_jumps();
  ASSERT_TRUE(target(0x005));
  EXPECT_FALSE(shim_.entries.contains(at(0x005)));
  EXPECT_TRUE(shim_.entries.contains(at(0x00d))) << "an int3 of ours";
  auto paused = pause();

  ASSERT_TRUE(table_.step_aside(paused, at(0x006)));
  ASSERT_TRUE(table_.step_back(paused));

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
  EXPECT_TRUE(shim_.entries.contains(at(0x005))) << "it is ours now";
}

TEST_F(Jumps, AreKnownAgainAsInt3s) {
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  disarm();
  ASSERT_FALSE(shim_.entries.contains(at(0x005)));

  arm();

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
  EXPECT_TRUE(shim_.entries.contains(at(0x005)));
}

TEST_F(Jumps, AreNotInTheOriginalText) {
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  ASSERT_TRUE(target(0x005));

  std::array<std::byte, 3> inside;
  ASSERT_TRUE(table_.original_text().read(at(0x007), inside));
  EXPECT_TRUE(std::ranges::equal(inside, std::span(original_).subspan(2)));
  constexpr std::byte kOthers{0x5a};
  std::array<std::byte, 4> more{{{}, {}, {}, kOthers}};
  ASSERT_TRUE(table_.original_text().read(at(0x005), std::span(more).first(3)));
  EXPECT_TRUE(std::ranges::equal(std::span(more).first(3), std::span(original_).first(3)));
  EXPECT_EQ(more[3], kOthers);
  EXPECT_EQ(reason(0x00d), "allowed") << "a sweep goes through it";
}

TEST_F(Jumps, TellWhereEachDisplacedInstructionWas) {
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  const auto entry = target(0x005);
  ASSERT_TRUE(entry);

  const GuestVirt code = entry->wrapping_add(SHIM_JUMP_CALL_END + 1);
  std::map<GuestVirt, std::tuple<GuestVirt, unsigned, unsigned>> told;
  for (const auto& slot : table_.slots()) {
    told[slot.begin] = {slot.address, slot.size, slot.length};
  }
  EXPECT_EQ(told.at(shim_.known.at(at(0x005))), std::tuple(at(0x005), 6u, 1u)) << "for an int3";
  EXPECT_EQ(told.at(*entry), std::tuple(at(0x005), 1u, 0u)) << "nothing of it has run";
  EXPECT_EQ(told.at(code), std::tuple(at(0x005), 1u, 1u));
  EXPECT_EQ(told.at(code.wrapping_add(1)), std::tuple(at(0x006), 12u, 7u)) << "with the jump back";
  EXPECT_EQ(told.size(), 4u);
}

TEST_F(Jumps, AreInt3sWhereTheirRecordCannotBeWritten) {
  ASSERT_TRUE(add(at(0x005)));
  shim_.refuses_slots = true;

  arm_jumps();

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
  EXPECT_EQ(table_.slots().size(), 1u) << "its slot";
}

/// Half of the room is for int3s; a record takes its head, the push, the lea and a jump back.
TEST_F(Jumps, TakeNoMoreThanHalfOfTheRoom) {
  constexpr std::size_t kRecord = vmm::JumpRecord::kBytes + 1 + 7 + 5;
  for (const bool fits : {false, true}) {
    FakeMachine machine;
    NamedKernel kernel;
    for (std::uint64_t n = 0; n < 14; ++n) machine.put(n, {machine_.text(n)});
    shim_.room = kSlotBytes / 2 + kRecord - (fits ? 0 : 1);
    EXPECT_EQ(armed_in(machine, kernel, 0x005), fits ? std::byte{0xe9} : std::byte{0xcc});
  }
}

TEST_F(Jumps, StandAgainInTheSameRecord) {
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  const auto entry = target(0x005);
  ASSERT_TRUE(entry);
  const std::size_t slots = shim_.slots.size();
  table_.release(at(0x005));
  disarm();
  table_.park_unused();
  ASSERT_TRUE(add(at(0x005)));

  arm_jumps();

  EXPECT_EQ(target(0x005), entry);
  EXPECT_EQ(shim_.slots.size(), slots);
}

TEST_F(Jumps, AreDroppedWhenTheGuestChangesOneOfTheirBytes) {
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  machine_.put(0x005, code({0x90, 0x90, 0x90, 0x90, 0x90}));

  EXPECT_EQ(table_.drop_changed(), std::vector{at(0x005)});
  EXPECT_FALSE(shim_.entries.contains(at(0x005)));
  EXPECT_FALSE(table_.any_armed());
}

TEST_F(Jumps, AreNotWrittenOverWhatTheGuestHasMadeOfThem) {
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  const auto kprobe = code({0xe9, 1, 2, 3, 4});
  machine_.put(0x005, kprobe);
  ASSERT_TRUE(add(at(0x006)));

  arm_jumps();

  EXPECT_EQ(text_at(0x005), bytes_of(kprobe));
  EXPECT_EQ(table_.drop_changed(), (std::vector{at(0x005), at(0x006)}));
}

TEST_F(Jumps, KeepTheShimWhereAKprobeOfTheGuestsMayRunThem) {
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  set_kprobe(0x005);

  EXPECT_EQ(table_.drop_changed(), std::vector{at(0x005)});
  EXPECT_TRUE(table_.any_armed());
}

TEST_F(Jumps, DoNotKeepTheShimForABreakpointOfWhatLiesThereNow) {
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  machine_.put(0x005, code({0xcc}));

  EXPECT_EQ(table_.drop_changed(), std::vector{at(0x005)});
  EXPECT_FALSE(table_.any_armed());
}

TEST_F(Jumps, StepAsideAndComeBackAsInt3s) {
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  auto paused = pause();

  EXPECT_EQ(table_.step_aside(paused, at(0x006)), true);
  EXPECT_EQ(text_at(0x005), original_);
  set_kprobe(0x006);
  EXPECT_EQ(table_.step_back(paused), true);

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
  EXPECT_EQ(machine_.text(0x006), std::byte{0xcc});
  EXPECT_EQ(table_.jumps(), 0u);
}

TEST_F(Jumps, LeaveRoomForBreakpoints) {
  shim_.room = 8;
  ASSERT_TRUE(add(at(0x005)));

  arm_jumps();

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
}

/// f, at 5, as above.
class RecordingJumps : public Jumps {
 protected:
  RecordingJumps() { shim_.has_rings = true; }
  /// Whether the jump that stands there leads into a record that records; empty when none does.
  std::optional<bool> records_at(std::uint64_t offset) const {
    const auto entry = target(offset);
    if (!entry) return std::nullopt;
    const GuestVirt place = entry->wrapping_add(-std::uint64_t{vmm::JumpRecord::kEntry});
    vmm::JumpRecord::Bytes bytes;
    std::copy_n(shim_.slots.at(place).begin(), bytes.size(), bytes.begin());
    const auto record = vmm::JumpRecord::decode(bytes, place, *shim_.jump_entry());
    return record ? std::optional(record->recording.has_value()) : std::nullopt;
  }
};

TEST_F(RecordingJumps, AreThoseThatWereAskedToRecord) {
  ASSERT_TRUE(add(at(0x005)));
  ASSERT_TRUE(add(at(0x00d)));

  ASSERT_TRUE(table_.record_at(std::array{at(0x005)}));
  arm_jumps();

  EXPECT_EQ(shim_.recording, std::vector{at(0x005)}) << "the shim's table knows it, too";
  EXPECT_EQ(records_at(0x005), true);
}

TEST_F(RecordingJumps, KeepTheListThatTheyWereArmedWith) {
  ASSERT_TRUE(add(at(0x005)));
  ASSERT_TRUE(table_.record_at(std::array{at(0x005)}, 3));
  EXPECT_EQ(table_.recording(), 0u) << "it does not stand yet";
  arm_jumps();

  const auto again = table_.record_at(std::array{at(0x005)}, 4);

  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::Invalid);
  EXPECT_EQ(table_.recording_at(at(0x005)), 3);
  EXPECT_EQ(table_.recording(), 1u);
}

TEST_F(RecordingJumps, AreNoneWhereOneThatWaitsStands) {
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();

  EXPECT_FALSE(table_.record_at(std::array{at(0x005)}));

  EXPECT_FALSE(table_.recording_at(at(0x005)));
  EXPECT_FALSE(table_.recording_at(at(0x00d))) << "nothing is there";
  EXPECT_EQ(table_.recording(), 0u);
}

TEST_F(RecordingJumps, AreNoneUnlessAsked) {
  ASSERT_TRUE(add(at(0x005)));

  arm_jumps();

  EXPECT_TRUE(shim_.recording.empty());
  EXPECT_EQ(records_at(0x005), false);
}

TEST_F(RecordingJumps, AreNoneWhereThereAreNoRings) {
  shim_.has_rings = false;
  ASSERT_TRUE(add(at(0x005)));

  const auto recording = table_.record_at(std::array{at(0x005)});

  ASSERT_FALSE(recording);
  EXPECT_EQ(recording.error().code, ErrorCode::Unsupported);
  EXPECT_TRUE(table_.record_at({}));
  arm_jumps();
  EXPECT_EQ(records_at(0x005), false) << "it waits";
}

TEST_F(RecordingJumps, ARevivedPointOfOtherTextDoesNotRecord) {
  ASSERT_TRUE(add(at(0x005)));
  ASSERT_TRUE(table_.record_at(std::array{at(0x005)}));
  arm_jumps();
  table_.release(at(0x005));
  disarm();
  table_.park_unused();
  machine_.put(0x005, code({0x53}));  // push rbx
  ASSERT_TRUE(add(at(0x005)));

  arm_jumps();

  EXPECT_EQ(shim_.recording.size(), 1u) << "nobody asked again";
  EXPECT_EQ(records_at(0x005), false);
}

TEST_F(RecordingJumps, ThatComeBackDoNotRecordAnyMore) {
  ASSERT_TRUE(add(at(0x005)));
  ASSERT_TRUE(table_.record_at(std::array{at(0x005)}));
  arm_jumps();
  ASSERT_EQ(records_at(0x005), true);
  table_.release(at(0x005));
  disarm();
  table_.park_unused();
  ASSERT_TRUE(add(at(0x005)));

  arm_jumps();

  EXPECT_EQ(records_at(0x005), false) << "who comes then asks anew";
}

}  // namespace
}  // namespace ringside::providers
