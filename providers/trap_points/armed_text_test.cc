#include "providers/trap_points/armed_text.h"

#include <gtest/gtest.h>

#include "providers/trap_points/trap_points_for_tests.h"

namespace ringside::providers {
namespace {

using namespace trap_point_fakes;

TEST_F(TrapPoints, ArmAllInOneWriteAndRestoreThemInOne) {
  const auto first = add(at(0x005));
  const auto second = add(at(0x106));
  ASSERT_TRUE(first && second);

  arm();
  EXPECT_EQ(machine_.write_calls, std::vector<std::size_t>{2});
  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
  EXPECT_EQ(machine_.text(0x106), std::byte{0xcc});
  EXPECT_TRUE(table_.is_armed(*second));

  auto paused = pause();
  ASSERT_TRUE(table_.disarm(paused));
  EXPECT_EQ(machine_.text(0x005), std::byte{0x55});
  EXPECT_EQ(machine_.text(0x106), std::byte{0xc3});
  EXPECT_TRUE(shim_.entries.contains(at(0x106))) << "for a late trap";
  EXPECT_FALSE(table_.is_armed(*second));
  EXPECT_EQ(machine_.write_calls, (std::vector<std::size_t>{2, 2}));
}

TEST_F(TrapPoints, AreWrittenAfterTheShimWasToldSo) {
  ASSERT_TRUE(add(at(0x005)));
  const unsigned before = shim_.armings;

  arm();

  EXPECT_EQ(shim_.armings, before + 1);
}

TEST_F(TrapPoints, AreNotArmedWhereAKprobeHasComeMeanwhile) {
  ASSERT_TRUE(add(at(0x006)) && add(at(0x00d)));
  set_kprobe(0x006);

  arm();

  EXPECT_EQ(table_.drop_changed(), std::vector{at(6)});
  EXPECT_EQ(machine_.text(0x00d), std::byte{0xcc}) << "elsewhere in the function";
}

TEST_F(TrapPoints, AreNotArmedRightBehindAKprobeThatHasCome) {
  ASSERT_TRUE(add(at(0x006)));
  set_kprobe(0x005);

  arm();

  EXPECT_EQ(machine_.text(0x006), std::byte{0x48}) << "the kernel would keep our int3 as its own";
  EXPECT_EQ(table_.drop_changed(), std::vector{at(6)});
}

TEST_F(TrapPoints, LeaveItsHitsToAKprobeThatCameBeforeThem) {
  const auto id = add(at(0x005)), other = add(at(0x106));
  ASSERT_TRUE(id && other);
  set_kprobe(0x005);
  EXPECT_TRUE(shim_.entries.empty()) << "nothing stands yet";

  arm();

  EXPECT_FALSE(table_.is_armed(*id));
  EXPECT_FALSE(shim_.entries.contains(at(0x005)));
  EXPECT_TRUE(shim_.entries.contains(at(0x106)));
}

TEST_F(TrapPoints, AreArmedThoughAKprobeHasGone) {
  machine_.put(0x112, code({0x48, 0x31, 0xc0, 0x90, 0x90, 0x90, 0xc3}));
  FakeKernel kernel;
  kernel.name({{0x112, "h"}, {0x180, "end"}});
  set_kprobe(0x112);
  TrapPointTable table(machine_, shim_, kernel);
  const auto id = table.examine_and_add(at(0x118));
  ASSERT_TRUE(id);
  machine_.put(0x112, code({0x48}));
  forget_kprobe();

  auto paused = pause();
  ASSERT_TRUE(table.arm(paused));

  EXPECT_TRUE(table.is_armed(*id));
}

TEST_F(TrapPoints, AreNotArmedInAFunctionThatIsAnother) {
  const auto id = add(at(0x00d));
  ASSERT_TRUE(id);
  machine_.put(0x005, code({0x53}));  // push rbx: the ret after it is what it was

  arm();

  EXPECT_FALSE(table_.is_armed(*id));
  EXPECT_EQ(machine_.text(0x00d), std::byte{0xc3});
}

TEST_F(TrapPoints, AreArmedThoughTheGuestHasPatchedItsOwnPlaces) {
  machine_.put(0x112, code({0x0f, 0x1f, 0x44, 0, 0, 0x66, 0x90, 0x55, 0xc3}));
  FakeKernel kernel;
  kernel.name({{0x112, "h"}, {0x180, "end"}});
  kernel.patched = {{at(0x117), 2, "jump label"}};
  TrapPointTable table(machine_, shim_, kernel);
  const auto id = table.examine_and_add(at(0x119));
  ASSERT_TRUE(id);
  machine_.put(0x112, code({0xe8, 1, 2, 3, 4, 0xeb, 0x01}));  // ftrace on, the label too

  auto paused = pause();
  ASSERT_TRUE(table.arm(paused));

  EXPECT_TRUE(table.is_armed(*id));
}

TEST_F(TrapPoints, AreNotArmedOverTextThatChangedMeanwhile) {
  const auto id = add(at(0x005));
  ASSERT_TRUE(id);
  machine_.put(5, code({0x90}));

  arm();

  EXPECT_FALSE(table_.is_armed(*id));
  EXPECT_EQ(machine_.text(5), std::byte{0x90});
  EXPECT_EQ(table_.drop_changed(), std::vector{at(5)});
}

TEST_F(TrapPoints, AreNotArmedWhenAnyByteOfTheirInstructionChanged) {
  const auto id = add(at(0x006));  // lea: the slot holds a copy of all its bytes
  ASSERT_TRUE(id);
  machine_.put(0x008, code({0x0d}));

  arm();

  EXPECT_FALSE(table_.is_armed(*id));
  EXPECT_EQ(machine_.text(6), std::byte{0x48});
}

TEST_F(TrapPoints, AreRestoredAfterArmingFailedHalfWay) {
  ASSERT_TRUE(add(at(0x005)) && add(at(0x00d)));
  machine_.refused = at(0x00d);
  auto paused = pause();
  ASSERT_FALSE(table_.arm(paused));
  ASSERT_EQ(machine_.text(5), std::byte{0xcc});
  EXPECT_TRUE(table_.any_armed());
  machine_.refused.reset();

  ASSERT_TRUE(table_.disarm(paused));

  EXPECT_EQ(machine_.text(5), std::byte{0x55});
  EXPECT_FALSE(table_.any_armed());
}

TEST_F(TrapPoints, AreArmedInAnotherPauseWhereArmingFailedHalfWay) {
  ASSERT_TRUE(add(at(0x005)) && add(at(0x00d)));
  machine_.refused = at(0x00d);
  auto paused = pause();
  ASSERT_FALSE(table_.arm(paused));
  machine_.refused.reset();

  ASSERT_TRUE(table_.arm(paused));

  EXPECT_EQ(machine_.text(5), std::byte{0xcc});
  EXPECT_EQ(machine_.text(0xd), std::byte{0xcc});
}

TEST_F(TrapPoints, StayArmedWhereTheirByteCannotBeRestored) {
  const auto first = add(at(0x005));
  const auto second = add(at(0x00d));
  ASSERT_TRUE(first && second);
  arm();
  machine_.refused = at(0x00d);
  auto paused = pause();

  EXPECT_FALSE(table_.disarm(paused));

  EXPECT_FALSE(table_.is_armed(*first));
  EXPECT_TRUE(table_.is_armed(*second));
  EXPECT_TRUE(table_.any_armed()) << "the shim must stay";
}

TEST_F(TrapPoints, AreNotArmedByAMachineThatOnlySaysSo) {
  ASSERT_TRUE(add(at(0x005)));
  machine_.lies = true;
  auto paused = pause();

  const auto armed = table_.arm(paused);

  ASSERT_FALSE(armed);
  EXPECT_NE(armed.error().message.find("there is none"), std::string::npos);
  ASSERT_TRUE(table_.disarm(paused));
  EXPECT_FALSE(table_.any_armed());
}

TEST_F(TrapPoints, StayArmedWhereAMachineOnlySaysThatTheyAreRestored) {
  ASSERT_TRUE(add(at(0x005)));
  arm();
  machine_.lies = true;
  auto paused = pause();

  EXPECT_FALSE(table_.disarm(paused));

  EXPECT_TRUE(table_.any_armed()) << "the shim must stay";
}

TEST_F(TrapPoints, AreNotWrittenIntoAnotherKernel) {
  ASSERT_TRUE(add(at(0x005)) && add(at(0x00d)));
  shim_.mapped = false;
  auto paused = pause();
  EXPECT_FALSE(table_.arm(paused));
  shim_.mapped = true;
  ASSERT_TRUE(table_.arm(paused));
  shim_.mapped = false;
  machine_.write_calls.clear();

  EXPECT_FALSE(table_.disarm(paused));

  EXPECT_TRUE(machine_.write_calls.empty());
  EXPECT_TRUE(table_.any_armed());
  EXPECT_TRUE(shim_.entries.contains(at(0x005)));
}

TEST_F(TrapPoints, HaveNotChangedInAMachineThatEnds) {
  const auto probe = add(at(0x006));
  ASSERT_TRUE(probe);
  arm();

  machine_.unmap_text();
  shim_.now = vmm::ShimState::Overwritten;

  EXPECT_TRUE(table_.drop_changed().empty());
  EXPECT_TRUE(table_.is_armed(*probe));

  shim_.now = vmm::ShimState::There;
  EXPECT_EQ(table_.drop_changed(), std::vector{at(6)}) << "a module's text that is gone";
}

}  // namespace
}  // namespace ringside::providers
