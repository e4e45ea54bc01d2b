#include <gtest/gtest.h>

#include "providers/trap_points/trap_points_for_tests.h"

namespace ringside::providers {
namespace {

using namespace trap_point_fakes;

TEST_F(TrapPoints, StepAsideWhileTheGuestReadsTheirFunctionAndComeBack) {
  const auto in_f = add(at(0x006)), in_g = add(at(0x106));
  ASSERT_TRUE(in_f && in_g);
  arm();

  auto paused = pause();
  EXPECT_EQ(table_.step_aside(paused, at(0x00d)), true);

  EXPECT_EQ(machine_.text(0x006), std::byte{0x48});
  EXPECT_TRUE(shim_.entries.contains(at(0x006))) << "for a late trap";
  EXPECT_EQ(machine_.text(0x106), std::byte{0xcc}) << "of another function";
  EXPECT_EQ(table_.step_aside(paused, at(0x00d)), false) << "there is none any more";

  EXPECT_EQ(table_.step_back(paused), true);

  EXPECT_EQ(machine_.text(0x006), std::byte{0xcc});
  EXPECT_TRUE(table_.is_armed(*in_f));
  EXPECT_TRUE(table_.drop_changed().empty());
}

TEST_F(TrapPoints, NeitherStepAsideNorComeBackInAnotherKernel) {
  ASSERT_TRUE(add(at(0x006)));
  arm();
  auto paused = pause();
  shim_.mapped = false;
  EXPECT_FALSE(table_.step_aside(paused, at(0x006)));
  EXPECT_EQ(machine_.text(0x006), std::byte{0xcc});
  shim_.mapped = true;
  ASSERT_EQ(table_.step_aside(paused, at(0x006)), true);
  shim_.mapped = false;

  EXPECT_FALSE(table_.step_back(paused));

  EXPECT_EQ(machine_.text(0x006), std::byte{0x48});
  shim_.mapped = true;
  EXPECT_EQ(table_.step_back(paused), true);
  EXPECT_EQ(machine_.text(0x006), std::byte{0xcc});
}

TEST_F(TrapPoints, ThatNobodyUsesAnyMoreDoNotComeBack) {
  ASSERT_TRUE(add(at(0x005)) && add(at(0x006)));
  arm();
  auto paused = pause();
  ASSERT_EQ(table_.step_aside(paused, at(0x006)), true);
  table_.release(at(0x006));

  EXPECT_EQ(table_.step_back(paused), true);

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
  EXPECT_EQ(machine_.text(0x006), std::byte{0x48});
}

TEST_F(TrapPoints, DoNotComeBackToWhereAKprobeHasCome) {
  ASSERT_TRUE(add(at(0x005)) && add(at(0x006)) && add(at(0x00d)));
  arm();
  auto paused = pause();
  ASSERT_EQ(table_.step_aside(paused, at(0x006)), true);
  set_kprobe(0x006);

  EXPECT_EQ(table_.step_back(paused), true);

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc}) << "before it";
  EXPECT_EQ(machine_.text(0x00d), std::byte{0xcc}) << "behind what it may rewrite";
  EXPECT_EQ(table_.drop_changed(), std::vector{at(0x006)});
  EXPECT_FALSE(shim_.entries.contains(at(0x006))) << "that int3 is the guest's";
  ASSERT_TRUE(table_.disarm(paused));
  EXPECT_EQ(machine_.text(0x006), std::byte{0xcc});
}

TEST_F(TrapPoints, ComeBackWhenTheGuestIsDoneWithItsText) {
  ASSERT_TRUE(add(at(0x006)));
  arm();
  auto paused = pause();
  ASSERT_EQ(table_.step_aside(paused, at(0x000)), true);
  write(kTextMutex + guest_linux::fakes::kOwnerAt, std::uint64_t{0xffff888000001000});

  EXPECT_EQ(table_.step_back(paused), false);
  EXPECT_EQ(machine_.text(0x006), std::byte{0x48});

  write(kTextMutex + guest_linux::fakes::kOwnerAt, std::uint64_t{0});
  EXPECT_EQ(table_.step_back(paused), true);
  EXPECT_EQ(machine_.text(0x006), std::byte{0xcc});
}

TEST_F(TrapPoints, ThatSteppedAsideStayAwayOnceTracingHasEnded) {
  ASSERT_TRUE(add(at(0x006)));
  arm();
  auto paused = pause();
  ASSERT_EQ(table_.step_aside(paused, at(0x006)), true);
  ASSERT_TRUE(table_.disarm(paused));

  EXPECT_EQ(table_.step_back(paused), true);
  EXPECT_EQ(machine_.text(0x006), std::byte{0x48});
}

TEST_F(TrapPoints, RestAloneUntilTheyAreWoken) {
  ASSERT_TRUE(add(at(0x005)) && add(at(0x006)));
  arm();
  auto paused = pause();

  ASSERT_TRUE(table_.rest(paused, at(0x006)));
  EXPECT_EQ(machine_.text(0x006), std::byte{0x48});
  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc}) << "of the same function";
  EXPECT_FALSE(table_.stands_at(at(0x006)));

  EXPECT_EQ(table_.wake(paused, at(0x006)), true);
  EXPECT_EQ(machine_.text(0x006), std::byte{0xcc});
  EXPECT_TRUE(table_.stands_at(at(0x006)));
}

TEST_F(TrapPoints, ThatAProbeUsesTooDoNotRest) {
  ASSERT_TRUE(add(at(0x006)) && add(at(0x006)));
  arm();
  auto paused = pause();

  ASSERT_TRUE(table_.rest(paused, at(0x006)));

  EXPECT_EQ(machine_.text(0x006), std::byte{0xcc});
}

TEST_F(TrapPoints, AreNotWokenOnceTracingHasEnded) {
  ASSERT_TRUE(add(at(0x006)));
  arm();
  auto paused = pause();
  ASSERT_TRUE(table_.rest(paused, at(0x006)));
  ASSERT_TRUE(table_.disarm(paused));

  EXPECT_EQ(table_.wake(paused, at(0x006)), false);
  EXPECT_EQ(machine_.text(0x006), std::byte{0x48});
}

TEST_F(TrapPoints, AreNotWokenWhereAKprobeHasCome) {
  ASSERT_TRUE(add(at(0x006)));
  arm();
  auto paused = pause();
  ASSERT_TRUE(table_.rest(paused, at(0x006)));
  set_kprobe(0x006);

  EXPECT_EQ(table_.wake(paused, at(0x006)), true);

  EXPECT_EQ(table_.drop_changed(), std::vector{at(0x006)});
  EXPECT_FALSE(shim_.entries.contains(at(0x006))) << "that int3 is the guest's";
}

}  // namespace
}  // namespace ringside::providers
