#include "providers/trap_points/jump_run.h"

#include <gtest/gtest.h>

#include "providers/trap_points/jumps_for_tests.h"

namespace ringside::providers {
namespace {

using namespace trap_point_fakes;

TEST_F(Jumps, LieInOnePage) {
  for (const bool fits : {true, false}) {
    FakeMachine machine;
    FakeKernel kernel;
    const std::uint64_t begin = fits ? 0xff6 : 0xff7;  // its push is 5 bytes behind it
    kernel.name({{begin, "f"}, {begin + 14, "end"}, {0x180000, "data"}});
    for (std::uint64_t n = 0; n < 14; ++n) machine.put(begin + n, {machine_.text(n)});

    EXPECT_EQ(armed_in(machine, kernel, begin + 5), fits ? std::byte{0xe9} : std::byte{0xcc});
  }
}

TEST_F(Jumps, StandOnlyBehindAnFtraceSite) {
  machine_.put(0x100, code({0x48, 0x8d, 0x05, 0, 0, 0, 0, 0xc3}));
  ASSERT_TRUE(add(at(0x100)));  // g is not known to be a compiler's

  arm_jumps();

  EXPECT_EQ(machine_.text(0x100), std::byte{0xcc});
}

TEST_F(Jumps, AreInt3sWhereAJumpLeadsInto) {
  machine_.put(0x00d, code({0xeb, 0xf7, 0x90}));  // jmp to lea
  ASSERT_TRUE(add(at(0x005)));

  arm_jumps();

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
}

TEST_F(Jumps, MayBeJumpedToThemselves) {
  machine_.put(0x00d, code({0xeb, 0xf6, 0x90}));  // jmp to push
  ASSERT_TRUE(add(at(0x005)));

  arm_jumps();

  EXPECT_TRUE(target(0x005).has_value());
}

TEST_F(Jumps, AreInt3sBesideJumpsByRegisters) {
  machine_.put(0x00d, code({0xff, 0xe0}));  // jmp rax
  ASSERT_TRUE(add(at(0x005)));

  arm_jumps();

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
}

TEST_F(Jumps, AreInt3sWhereTheKernelMayLeadInto) {
  for (const bool by_fault : {false, true}) {
    FakeMachine machine;
    for (std::uint64_t n = 0; n < 16; ++n) machine.put(n, {machine_.text(n)});
    NamedKernel kernel;
    kernel.patched = {{.address = at(0x40), .length = 2, .what = "jump label"}};
    (by_fault ? kernel.patched[0].fixup : kernel.patched[0].target) = at(0x006);

    EXPECT_EQ(armed_in(machine, kernel, 0x005), std::byte{0xcc}) << by_fault;
  }
}

/// A key that is off is a nop: only the kernel's tables tell of the way out, and only the code
/// there of the way back.
TEST_F(Jumps, AreInt3sWhereCodeComesBackThatOnlyTheKernelsTablesLeadTo) {
  for (const char* const name : {"f.cold", "g"}) {
    for (const bool by_fault : {false, true}) {
      FakeMachine machine;
      for (std::uint64_t n = 0; n < 13; ++n) machine.put(n, {machine_.text(n)});
      machine.put(0x00d, code({0x66, 0x90, 0xc3}));
      machine.put(0x100, code({0x90, 0xe9, 0x00, 0xff, 0xff, 0xff}));  // nop, jmp to lea
      FakeKernel kernel;
      kernel.name({{0x000, "f"}, {0x100, name}, {0x106, "end"}, {0x180000, "data"}});
      kernel.patched = {{.address = at(0x00d), .length = 2, .what = "jump label"}};
      (by_fault ? kernel.patched[0].fixup : kernel.patched[0].target) = at(0x100);

      EXPECT_EQ(armed_in(machine, kernel, 0x005), std::byte{0xcc}) << name << " " << by_fault;
    }
  }
}

}  // namespace
}  // namespace ringside::providers
