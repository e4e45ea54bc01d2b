#include "providers/trap_points/jump_planner.h"

#include <gtest/gtest.h>

#include "providers/trap_points/jumps_for_tests.h"

namespace ringside::providers {
namespace {

using namespace trap_point_fakes;

TEST_F(Jumps, GiveWayToWhoStandsInTheMiddle) {
  ASSERT_TRUE(add(at(0x005)));
  standing_ = std::vector{at(0x006)};

  arm_jumps();

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
  EXPECT_EQ(machine_.text(0x006), original_[1]);
}

/// An int3 once stood in the jump's last byte: a trap of it that the shim has yet to look up has
/// the next byte's address on its stack, and goes back to that last byte.
TEST_F(Jumps, GiveWayToALateTrapOfAPointInTheirLastByte) {
  // add rax, 1; push rax; nops and ret
  machine_.put(0x005, code({0x48, 0x83, 0xc0, 0x01, 0x50, 0x90, 0x90, 0x90, 0xc3}));
  table_.look_again();
  standing_ = std::vector{at(0x00a)};
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  EXPECT_TRUE(target(0x005)) << "a return to there is not in the way";
  table_.release(at(0x005));
  auto paused = pause();
  ASSERT_TRUE(table_.disarm_unused(paused));
  ASSERT_TRUE(add(at(0x009)));
  table_.release(at(0x009));
  table_.park_unused();
  ASSERT_TRUE(add(at(0x005)));

  arm_jumps();

  ASSERT_TRUE(armed_) << armed_.error().message;
  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
  EXPECT_EQ(asked_.at(0).end, at(0x00b));
}

TEST_F(Jumps, DoNotMindWhoStandsAtTheBeginningOrBehind) {
  ASSERT_TRUE(add(at(0x005)));
  standing_ = std::vector{at(0x005), at(0x00d)};

  arm_jumps();

  EXPECT_TRUE(target(0x005).has_value());
}

/// The push of an int3 that stood there before: a task in its slot comes back to the lea.
TEST_F(Jumps, GiveWayToWhoComesBackIntoTheMiddleFromASlot) {
  ASSERT_TRUE(add(at(0x005)));
  arm();
  const GuestVirt slot = shim_.entries.at(at(0x005));
  disarm();
  standing_ = std::vector{slot};

  EXPECT_TRUE(arm_jumps());

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
  standing_ = std::vector<GuestVirt>();
  disarm();
  arm_jumps();
  EXPECT_TRUE(target(0x005).has_value()) << "once it has left";
}

/// The record of a jump that was taken away leads to what is behind all of its instructions.
TEST_F(Jumps, GiveWayToWhoComesBackIntoTheMiddleFromARecord) {
  machine_.put(0x005, code({0x48, 0x89, 0xfb, 0x31, 0xc0, 0x31, 0xd2, 0x90, 0xc3}));
  ASSERT_TRUE(add(at(0x005)));  // mov, xor
  arm_jumps();
  const auto entry = target(0x005);
  ASSERT_TRUE(entry);
  disarm();
  table_.release(at(0x005));
  ASSERT_TRUE(add(at(0x008)));  // two xors and a nop: the second one is where that goes on
  standing_ = std::vector{entry->wrapping_add(SHIM_JUMP_CALL_END + 1)};

  EXPECT_TRUE(arm_jumps());

  EXPECT_EQ(machine_.text(0x008), std::byte{0xcc});
}

TEST_F(Jumps, DoNotMindWhoIsInASlotThatLeadsElsewhere) {
  ASSERT_TRUE(add(at(0x005)));
  ASSERT_TRUE(add(at(0x00d)));
  standing_ = std::vector{shim_.known.at(at(0x00d))};

  EXPECT_TRUE(arm_jumps());

  EXPECT_TRUE(target(0x005).has_value());
}

TEST_F(Jumps, AreInt3sWhileSomebodyIsInASlotThatNobodyKnows) {
  ASSERT_TRUE(add(at(0x005)));
  standing_ = std::vector{kSlots.wrapping_add(kSlotBytes / 2)};

  EXPECT_FALSE(arm_jumps());

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
}

TEST_F(Jumps, DoNotMindWordsThatNameAPlaceWithoutCode) {
  constexpr std::uint64_t kLargePage = 2 << 20, kFrame = 4 << 20, kWhere = kSlotBytes / 2;
  machine_.put64(kPmd.raw() + 8 * (kSlots.raw() / kLargePage % 512), kFrame | 0x83);
  standing_ = std::vector{kSlots.wrapping_add(kWhere)};
  ASSERT_TRUE(add(at(0x005)));
  table_.prepare_jumps();
  auto paused = pause();
  machine_.put64(kFrame + kWhere, 0x90);
  EXPECT_FALSE(table_.find_standing(paused)) << "somebody's code, it may be";
  machine_.put64(kFrame + kWhere, 0);

  EXPECT_TRUE(table_.find_standing(paused)) << "a former owner's";
}

TEST_F(Jumps, AreInt3sWhereItIsNotKnownWhoStandsThere) {
  ASSERT_TRUE(add(at(0x005)));
  standing_ = fail(ErrorCode::Invalid, "unclear");

  EXPECT_FALSE(arm_jumps());

  EXPECT_TRUE(armed_);
  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
}

TEST_F(Jumps, AreInt3sInAPauseThatNobodyLookedAtTheStacksIn) {
  ASSERT_TRUE(add(at(0x005)));
  table_.prepare_jumps();

  arm();

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
}

TEST_F(Jumps, AreInt3sBesideAnotherTrapPoint) {
  ASSERT_TRUE(add(at(0x005)));
  ASSERT_TRUE(add(at(0x006)));

  arm_jumps();

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
  EXPECT_TRUE(target(0x006).has_value()) << "lea alone has more than five bytes";
}

TEST_F(Jumps, BecomeInt3sWhenAnotherTrapPointComesIntoThem) {
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  ASSERT_TRUE(target(0x005));
  ASSERT_TRUE(add(at(0x006)));

  arm_jumps();

  ASSERT_TRUE(armed_) << armed_.error().message;
  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
  EXPECT_TRUE(target(0x006).has_value());
  disarm();
  EXPECT_EQ(text_at(0x005), original_);
}

TEST_F(Jumps, BecomeInt3sFirstAndTheOtherComesOnceAllHaveLeftTheirRecord) {
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  const auto entry = target(0x005);
  ASSERT_TRUE(entry);
  ASSERT_TRUE(add(at(0x006)));
  standing_ = std::vector{entry->wrapping_add(SHIM_JUMP_CALL_END)};
  is_inside_ = true;
  table_.prepare_jumps();
  auto paused = pause();

  EXPECT_FALSE(table_.find_standing(paused)) << "who is inside would pass by the new one";
  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc}) << "nobody else comes inside";
  EXPECT_TRUE(shim_.entries.contains(at(0x005)));
  EXPECT_EQ(machine_.text(0x006), original_[1]);
  EXPECT_FALSE(table_.find_standing(paused));
  is_inside_ = false;
  EXPECT_TRUE(table_.find_standing(paused)) << "the word is left over from an earlier call";
  ASSERT_TRUE(table_.arm(paused));

  EXPECT_TRUE(target(0x006).has_value());
}

/// It may be a task that gets no processor for long; it passes by once.
TEST_F(Jumps, MakeWayAlsoWhereSomebodyStaysInside) {
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  const auto entry = target(0x005);
  ASSERT_TRUE(entry);
  ASSERT_TRUE(add(at(0x006)));
  standing_ = std::vector{entry->wrapping_add(SHIM_JUMP_CALL_END)};
  is_inside_ = true;

  EXPECT_FALSE(arm_jumps());

  ASSERT_TRUE(armed_) << armed_.error().message;
  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
  EXPECT_EQ(machine_.text(0x006), std::byte{0xcc}) << "it is not known who stands there";
}

TEST_F(Jumps, AreInt3sWhereAKprobeOfTheGuestsIsBehindTheFirstInstruction) {
  set_kprobe(0x006);
  table_.look_again();
  ASSERT_TRUE(add(at(0x005)));

  arm_jumps();

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
  EXPECT_EQ(machine_.text(0x006), std::byte{0xcc}) << "the guest's own";
}

}  // namespace
}  // namespace ringside::providers
