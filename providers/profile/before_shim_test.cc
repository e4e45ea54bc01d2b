// before_shim(): from a slot, and from any depth of the shim's stack.
#include "providers/profile/before_shim.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "disasm/code_for_tests.h"
#include "providers/testing/fake_guest.h"
#include "vmm/page_walk.h"
#include "vmm/shim/plain_region_for_tests.h"
#include "vmm/shim/shim.h"

namespace ringside::providers {
namespace {

constexpr GuestVirt kShim{0xffff'ffff'9f00'0000};
constexpr GuestVirt kProbed{0xffff'ffff'8100'1234};

class BeforeShim : public ::testing::Test {
 protected:
  BeforeShim() {
    EXPECT_TRUE(shim_.add_entry(kProbed, slot_));
    now_.rip = kShim.raw() + 0xb1;
    now_.rsp = kernel_address(kStack).raw();
    now_.cs = 0x10, now_.ss = 0x18;
    now_.rbp = 77;
  }
  void put_frame(unsigned pushed, std::uint64_t rip, std::uint64_t cs) {
    const std::uint64_t frame[] = {rip, cs, 0x202, 0xffff'c900'0000'1008, 0x18};
    memory_.put(kStack + 8 * pushed, frame, sizeof frame);
  }
  std::optional<Registers> before() const { return before_shim(now_, shim_, reader_); }

  FakeMemory memory_;
  FakeKernel kernel_;
  vmm::PageTableReader reader_{memory_.memory(), kernel_.table()};
  vmm::PlainRegion region_;
  vmm::Shim shim_{region_.memory(), region_.layout(), kShim, 1, vmm::PlainRegion::gate()};
  const GuestVirt slot_ = *shim_.allocate_slot(8);
  Registers now_;
};

TEST_F(BeforeShim, ADisplacedInstructionIsWhereItWas) {
  now_.rip = slot_.raw() + 3;

  const auto before = this->before();

  ASSERT_TRUE(before);
  EXPECT_EQ(before->rip, kProbed.raw());
  EXPECT_EQ(before->rsp, now_.rsp);
}

TEST_F(BeforeShim, TheFrameIsFoundBelowWhatTheShimPushed) {
  for (unsigned pushed = 0; pushed <= 6; ++pushed) {
    memory_ = FakeMemory();
    put_frame(pushed, kProbed.raw() + 1, 0x10);

    const auto before = this->before();

    ASSERT_TRUE(before) << pushed;
    EXPECT_EQ(before->rip, kProbed.raw());
    EXPECT_EQ(before->rsp, 0xffff'c900'0000'1008);
    EXPECT_EQ(before->rbp, 77u);
  }
}

TEST_F(BeforeShim, AFrameThatLeadsToTheSlotIsOfItsTrapPoint) {
  put_frame(4, slot_.raw(), 0x10);

  ASSERT_TRUE(before());
  EXPECT_EQ(before()->rip, kProbed.raw());
}

TEST_F(BeforeShim, TheCallOfAJumpsRecordIsFoundFromTheFirstInstructionOn) {
  for (const unsigned pushed : {0U, 5U, 9U, 11U}) {
    memory_ = FakeMemory();
    memory_.put64(kStack + 8 * pushed, slot_.raw() + 7);
    memory_.put64(kStack + 8 * pushed + 8, 0x246);

    const auto before = this->before();

    ASSERT_TRUE(before) << pushed;
    EXPECT_EQ(before->rip, kProbed.raw());
    EXPECT_EQ(before->rsp, kernel_address(kStack + 8 * pushed + 16).raw());
    EXPECT_EQ(before->rflags, 0x246u);
  }
}

/// Two trap points of a push with one slot, whose instruction has one byte.
class BeforeSharedSlot : public BeforeShim {
 protected:
  BeforeSharedSlot() {
    const std::vector<std::byte> code =
        disasm::code({0xff, 0x34, 0x24, 0x48, 0x89, 0x6c, 0x24, 8, 0xc3});
    EXPECT_TRUE(shim_.write_slot(shared_, code, {std::byte{0x55}, 1}));
    for (const GuestVirt at : {kFirst, kSecond}) EXPECT_TRUE(shim_.add_entry(at, shared_));
  }
  static constexpr GuestVirt kFirst{kProbed.raw() + 0x100}, kSecond{kProbed.raw() + 0x200};
  const GuestVirt shared_ = *shim_.allocate_slot(9);
};

TEST_F(BeforeSharedSlot, ItsTrapPointIsKnownByTheStack) {
  for (const auto& [offset, words] : {std::pair(0u, 1u), std::pair(3u, 2u), std::pair(8u, 2u)}) {
    now_.rip = shared_.raw() + offset;
    memory_.put64(kStack, kSecond.raw() + 1);

    const auto before = this->before();

    ASSERT_TRUE(before) << offset;
    EXPECT_EQ(before->rip, kSecond.raw());
    EXPECT_EQ(before->rsp, now_.rsp + 8 * words);
  }
  memory_.put64(kStack, kSecond.raw() + 2);
  EXPECT_FALSE(before()) << "no trap point of that slot";
}

TEST_F(BeforeSharedSlot, ItsFrameIsFoundWithTheWayBackBesideCs) {
  put_frame(6, shared_.raw(), (kSecond.raw() + 1) << 32 | 0x10);

  const auto before = this->before();

  ASSERT_TRUE(before);
  EXPECT_EQ(before->rip, kSecond.raw());
  EXPECT_EQ(before->rsp, 0xffff'c900'0000'1008);
  EXPECT_EQ(before->rflags, 0x202u);
}

TEST_F(BeforeSharedSlot, ItsFrameIsFoundWithTheWayBackOnTheStack) {
  const std::uint64_t frame[] = {shared_.raw(), 0x10, 0x202, kernel_address(kStack + 0x100).raw(),
                                 0x18};
  memory_.put(kStack + 32, frame, sizeof frame);
  memory_.put64(kStack + 0x100, kFirst.raw() + 1);

  const auto before = this->before();

  ASSERT_TRUE(before);
  EXPECT_EQ(before->rip, kFirst.raw());
  EXPECT_EQ(before->rsp, kernel_address(kStack + 0x108).raw());
}

TEST_F(BeforeShim, NothingIsMadeUp) {
  EXPECT_FALSE(before()) << "no frame";
  put_frame(4, kProbed.raw() + 1, 0x33);
  EXPECT_FALSE(before()) << "of user mode";
  put_frame(4, kShim.raw() + 0x80, 0x10);
  EXPECT_FALSE(before()) << "into the shim, but no slot";
  now_.rsp = 0x1000;
  EXPECT_FALSE(before()) << "no memory";
}

}  // namespace
}  // namespace ringside::providers
