#include "vmm/shim/mailbox_poller.h"

#include <gtest/gtest.h>

#include "vmm/shim/shim_channel_for_tests.h"

namespace ringside::vmm {
namespace {

using namespace shim_fakes;

class PolledShim : public ShimChannel {};

INSTANTIATE_TEST_SUITE_P(Every, PolledShim, kEveryReach, reach_name);

TEST_P(PolledShim, TheLastMailboxIsOneLikeAnyOther) {
  constexpr unsigned kLast = SHIM_MAILBOXES - 1;
  for (std::uint64_t claim = 1; claim < 6; ++claim) {
    raise(kLast, kText, claim);
    for (int i = 0; i < 64 && !region_.is_answered(kLast); ++i) shim_.poll(handlers_);
    EXPECT_TRUE(region_.is_answered(kLast)) << claim;
  }
  ASSERT_EQ(sink_.traps.size(), 5u);
  EXPECT_EQ(sink_.traps.back().registers.r15, 100 * kLast + 15u);
  raise(kLast, kText, 6);
  shim_.answer(kLast, handlers_);
  EXPECT_TRUE(region_.is_answered(kLast));
}

TEST_P(PolledShim, AWatchThatDoesNotSayOtherwiseKeepsNobody) {
  TrapWatch watch;
  handlers_.add(kText, watch);
  raise(0, kText);

  EXPECT_EQ(shim_.poll(handlers_), 1u);

  EXPECT_EQ(sink_.traps.size(), 1u);
  EXPECT_TRUE(region_.is_answered(0));
}

TEST_P(PolledShim, AShareIsEveryOtherMailbox) {
  for (const unsigned i : {0u, 1u}) raise(i, kText, 5);

  EXPECT_EQ(shim_.poll_share(handlers_, {1, 2}), 1u);

  EXPECT_FALSE(region_.is_answered(0));
  EXPECT_TRUE(region_.is_answered(1));
  EXPECT_EQ(shim_.poll_share(handlers_, {0, 2}), 1u);
  EXPECT_TRUE(region_.is_answered(0));
}

TEST_P(PolledShim, ServesAMachineOfOneVcpu) {
  PlainRegion region(GetParam());
  Shim shim(region.memory(), region.layout(), kBase, 1, PlainRegion::gate());
  ASSERT_TRUE(shim.add_entry(kText, *shim.allocate_slot(8)));
  for (unsigned n = 1; n < 6; ++n) {
    region.raise(0, kText);
    EXPECT_EQ(shim.poll(handlers_), 1u);
    EXPECT_TRUE(region.is_answered(0));
  }
  EXPECT_EQ(sink_.traps.size(), 5u);
}

}  // namespace
}  // namespace ringside::vmm
