#include "providers/boot/breakpoint_setter.h"

#include <gtest/gtest.h>

#include "providers/testing/fake_guest.h"
#include "vmm/fake_vcpu_exits_for_tests.h"

namespace ringside::providers {
namespace {

class Setter : public testing::Test {
 protected:
  FakeMemory memory_;
  FakeMachine machine_{memory_};
  vmm::FakeVcpuExits exits_;
};

TEST_F(Setter, SetsInAPauseOfItsOwn) {
  BreakpointSetter setter(machine_, exits_, {});

  ASSERT_TRUE(setter.set({GuestVirt(0x1000), GuestVirt(0x2000)}));
  ASSERT_TRUE(setter.set({GuestVirt(0x3000)}));

  EXPECT_EQ(exits_.breakpoints, std::vector{GuestVirt(0x3000)});
  EXPECT_EQ(machine_.pauses, 2u);
  EXPECT_FALSE(machine_.paused) << "the guest runs again";
}

TEST_F(Setter, TellsWhyItCouldNot) {
  BreakpointSetter setter(machine_, exits_, {});
  machine_.dead = true;

  const auto done = setter.set({GuestVirt(0x1000)});

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::MachineGone);
  EXPECT_TRUE(exits_.breakpoints.empty());
}

TEST_F(Setter, EndsWithoutHavingSetAnything) {
  { const BreakpointSetter setter(machine_, exits_, {}); }

  EXPECT_EQ(machine_.pauses, 0u);
}

}  // namespace
}  // namespace ringside::providers
