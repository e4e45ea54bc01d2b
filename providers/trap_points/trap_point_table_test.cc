// The life of trap points, from add() on: what the shim knows of them, users, drops.
#include "providers/trap_points/trap_point_table.h"

#include <gtest/gtest.h>

#include "providers/trap_points/trap_points_for_tests.h"

namespace ringside::providers {
namespace {

using namespace trap_point_fakes;

TEST_F(TrapPoints, PrepareTheSlotAndLeaveTheTextAlone) {
  const auto id = add(at(0x005));
  const auto again = add(at(0x005));

  ASSERT_TRUE(id && again);
  EXPECT_EQ(*id, *again);
  EXPECT_EQ(table_.size(), 1u);
  EXPECT_EQ(machine_.text(5), std::byte{0x55});
  const auto& slot = shim_.slots.at(shim_.known.at(at(0x005)));
  ASSERT_EQ(slot.size(), 6u) << "push rbp, jmp rel32";
  EXPECT_EQ(slot[0], std::byte{0x55});
  EXPECT_EQ(slot[1], std::byte{0xe9});
  const vmm::SlotHeader header = shim_.headers.at(shim_.known.at(at(0x005)));
  EXPECT_EQ(header.replaced, std::byte{0x55}) << "for a next tracer";
  EXPECT_EQ(header.return_length, 0u);
  EXPECT_TRUE(shim_.entries.empty()) << "an int3 there is the guest's own";
  EXPECT_FALSE(table_.is_armed(*id));
}

TEST_F(TrapPoints, WhereAModuleIsLoadedNothingOfTheFormerOneIsLeft) {
  const auto armed = add(at(0x006)), prepared = add(at(0x00d)), elsewhere = add(at(0x106));
  ASSERT_TRUE(armed && prepared && elsewhere);
  arm();
  const std::size_t writes = machine_.write_calls.size();
  // The same bytes but for ours, and a breakpoint of the module's own.
  machine_.put(0x006, code({0x48}));
  machine_.put(0x00d, code({0xcc}));

  table_.drop_in({at(0), at(0x100)});

  EXPECT_EQ(machine_.write_calls.size(), writes) << "nothing there is ours to write";
  EXPECT_FALSE(table_.is_armed(*armed));
  EXPECT_FALSE(shim_.entries.contains(at(0x006)));
  EXPECT_FALSE(shim_.entries.contains(at(0x00d)));
  EXPECT_TRUE(table_.is_armed(*elsewhere));
  EXPECT_EQ(table_.drop_changed(), (std::vector{at(0x006), at(0x00d)})) << "told once";
  EXPECT_TRUE(table_.is_dropped(at(0x006)));

  const auto again = add(at(0x006));
  ASSERT_TRUE(again) << "a new beginning";
  EXPECT_TRUE(*again == *armed);
  arm();
  EXPECT_EQ(machine_.text(0x006), std::byte{0xcc});
  EXPECT_TRUE(shim_.entries.contains(at(0x006))) << "the shim knows it again";
  EXPECT_TRUE(table_.drop_changed().empty());
}

TEST_F(TrapPoints, AreDroppedOnceWhenTheGuestChangesTheirText) {
  const auto id = add(at(0x005));
  ASSERT_TRUE(id && add(at(0x00d)));
  arm();
  EXPECT_TRUE(table_.drop_changed().empty());

  machine_.put(5, code({0x90}));
  EXPECT_EQ(table_.drop_changed(), std::vector{at(5)});
  EXPECT_TRUE(table_.drop_changed().empty());
  EXPECT_FALSE(table_.is_armed(*id));
  EXPECT_TRUE(table_.is_dropped(at(5)));

  auto paused = pause();
  ASSERT_TRUE(table_.disarm(paused));
  EXPECT_EQ(machine_.text(5), std::byte{0x90}) << "the guest's byte is not ours to restore";
}

TEST_F(TrapPoints, AreDroppedWhenTheirTextIsUnmapped) {
  ASSERT_TRUE(add(at(0x005)));
  arm();

  machine_.unmap_text();

  EXPECT_EQ(table_.drop_changed(), std::vector{at(5)});
}

TEST_F(TrapPoints, LeaveTheShimsTableWhenTheyAreDropped) {
  ASSERT_TRUE(add(at(0x005)) && add(at(0x00d)) && add(at(0x106)));
  machine_.put(0x106, code({0x90}));
  arm();
  machine_.put(5, code({0x90}));

  table_.drop_changed();

  EXPECT_FALSE(shim_.entries.contains(at(0x005))) << "an int3 there is the guest's own";
  EXPECT_FALSE(shim_.entries.contains(at(0x106)));
  EXPECT_TRUE(shim_.entries.contains(at(0x00d)));
}

TEST_F(TrapPoints, ComeAndGoOneByOneWhileTheOthersStay) {
  const auto first = add(at(0x005));
  ASSERT_TRUE(first);
  arm();
  const auto second = add(at(0x106));
  ASSERT_TRUE(second);
  const GuestVirt slot = shim_.known.at(at(0x106));
  for (unsigned n = 0; n < 3; ++n) {
    arm();
    EXPECT_TRUE(table_.is_armed(*first) && table_.is_armed(*second));

    table_.release(at(0x106));
    auto paused = pause();
    ASSERT_TRUE(table_.disarm_unused(paused));

    EXPECT_EQ(machine_.text(0x106), std::byte{0xc3});
    EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
    EXPECT_TRUE(shim_.entries.contains(at(0x106))) << "for a late trap";
    table_.park_unused();
    EXPECT_FALSE(shim_.entries.contains(at(0x106))) << "an int3 there is the guest's own";
    EXPECT_TRUE(shim_.entries.contains(at(0x005)));

    EXPECT_EQ(add(at(0x106)), *second);
    EXPECT_EQ(shim_.known.at(at(0x106)), slot) << "the same instruction, the same slot";
  }
  EXPECT_EQ(machine_.write_calls, std::vector<std::size_t>(1 + 2 * 3, 1)) << "only their own byte";
}

TEST_F(TrapPoints, StayAsLongAsTheyHaveAUser) {
  const auto id = add(at(0x005));
  ASSERT_TRUE(id && add(at(0x005)));
  arm();
  auto paused = pause();

  table_.release(at(0x005));
  ASSERT_TRUE(table_.disarm_unused(paused));
  table_.park_unused();
  EXPECT_TRUE(table_.is_armed(*id));
  EXPECT_TRUE(shim_.entries.contains(at(0x005)));

  table_.release(at(0x005));
  ASSERT_TRUE(table_.disarm_unused(paused));
  EXPECT_EQ(machine_.text(5), std::byte{0x55});
  arm();
  EXPECT_EQ(machine_.text(5), std::byte{0x55}) << "nobody wants it";
}

TEST_F(TrapPoints, BeginAnewWithASlotOfTheirOwnWhereTheGuestHasChangedTheText) {
  const auto id = add(at(0x005));
  ASSERT_TRUE(id);
  arm();
  const GuestVirt old = shim_.entries.at(at(0x005));
  machine_.put(5, code({0x53}));  // push rbx
  ASSERT_EQ(table_.drop_changed(), std::vector{at(5)});
  table_.look_again();

  ASSERT_EQ(add(at(0x005)), *id);
  arm();

  EXPECT_EQ(machine_.text(5), std::byte{0xcc});
  const GuestVirt slot = shim_.entries.at(at(0x005));
  EXPECT_NE(slot, old) << "a task may be inside that one";
  EXPECT_EQ(shim_.slots.at(old)[0], std::byte{0x55});
  EXPECT_EQ(shim_.slots.at(slot)[0], std::byte{0x53});
  auto paused = pause();
  table_.release(at(0x005));
  ASSERT_TRUE(table_.disarm_unused(paused));
  EXPECT_EQ(machine_.text(5), std::byte{0x53}) << "what the guest has made of it";
}

TEST_F(TrapPoints, AreRefusedWhereTheTextIsNotThatOfTheTrapPointThatStands) {
  ASSERT_TRUE(add(at(0x006)));
  arm();
  machine_.put(0x008, code({0x0d}));  // another operand after our int3
  table_.look_again();

  EXPECT_FALSE(add(at(0x006)));
}

TEST_F(TrapPoints, AreTheGuestsOwnPlacesOnceTracingHasEndedAndTheShimStays) {
  ASSERT_TRUE(add(at(0x005)));
  arm();
  auto paused = pause();
  table_.park_restored();
  EXPECT_TRUE(shim_.entries.contains(at(0x005))) << "it stands";

  ASSERT_TRUE(table_.disarm(paused));
  table_.park_restored();

  EXPECT_FALSE(shim_.entries.contains(at(0x005))) << "though it has a user";
}

TEST_F(TrapPoints, OneThatWasNeverArmedIsParkedToo) {
  ASSERT_TRUE(add(at(0x005)));
  table_.release(at(0x005));

  table_.park_unused();

  EXPECT_FALSE(shim_.entries.contains(at(0x005)));
  EXPECT_TRUE(machine_.write_calls.empty());
}

TEST_F(TrapPoints, ReportAFullShim) {
  shim_.full = true;

  const auto id = add(at(0x005));

  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, ErrorCode::Limit);
  EXPECT_EQ(table_.size(), 0u);
}

TEST_F(TrapPoints, ManyAreAllFoundAgain) {
  machine_.put(0x400, std::vector<std::byte>(0x8000, std::byte{0x90}));
  FakeKernel kernel;
  kernel.name({{0x400, "nops"}, {0x8400, "end"}});
  TrapPointTable table(machine_, shim_, kernel);

  for (std::uint64_t i = 0; i < 0x8000; ++i) {
    const auto id = table.examine_and_add(at(0x400 + i));
    ASSERT_TRUE(id) << id.error().message;
    ASSERT_EQ(id->value, i);
  }
  auto paused = pause();
  ASSERT_TRUE(table.arm(paused));

  for (std::uint64_t i = 0; i < 0x8000; ++i) {
    ASSERT_EQ(table.examine_and_add(at(0x400 + i))->value, i);
  }
  EXPECT_TRUE(table.drop_changed().empty());
}

}  // namespace
}  // namespace ringside::providers
