#include "vmm/shim/mailbox_claims.h"

#include <gtest/gtest.h>

#include "vmm/shim/plain_region_for_tests.h"

namespace ringside::vmm {
namespace {

constexpr GuestVirt kClaimsBase{0xffffffff9f000000};

class ClaimsAlone : public testing::Test {
 protected:
  static constexpr std::uint64_t claim(std::uint64_t number) { return number * SHIM_CLAIM; }

  PlainRegion region_;
  ShimRegion shared_{region_.memory(), region_.layout().place, region_.layout().bytes,
                     region_.layout().data};
  ShimPresence presence_{shared_, region_.layout(), kClaimsBase, PlainRegion::gate()};
  MailboxClaims claims_{shared_, presence_};
};

TEST_F(ClaimsAlone, OneOfTwoThreadsTakesAClaim) {
  const std::uint64_t before = claims_.last_taken(3);

  EXPECT_TRUE(claims_.take(3, before, claim(1)));

  EXPECT_FALSE(claims_.take(3, before, claim(1)));
  EXPECT_FALSE(claims_.wants_answer(3, claim(1) | SHIM_RAISED));
  EXPECT_TRUE(claims_.wants_answer(3, claim(2) | SHIM_RAISED));
  EXPECT_TRUE(claims_.wants_answer(2, claim(1) | SHIM_RAISED)) << "another mailbox";
  EXPECT_FALSE(claims_.wants_answer(2, claim(1) | SHIM_CLAIMED));
}

TEST_F(ClaimsAlone, ALaterClaimEndsTheOneBefore) {
  ASSERT_TRUE(claims_.take(0, 0, claim(1)));
  EXPECT_TRUE(claims_.is_last_taken(0, claim(1)));

  ASSERT_TRUE(claims_.take(0, claim(1), claim(2)));

  EXPECT_FALSE(claims_.is_last_taken(0, claim(1)));
}

TEST_F(ClaimsAlone, CountOnPastTheLastOne) {
  const std::uint64_t last = ~std::uint64_t{0} - SHIM_CLAIM + 1;
  ASSERT_TRUE(claims_.take(0, 0, last));

  EXPECT_TRUE(claims_.wants_answer(0, claim(1) | SHIM_RAISED));
}

TEST_F(ClaimsAlone, AnAnswerThatWasNotedEndsTheWait) {
  region_.head(5).head = claim(1) | SHIM_RAISED;
  const auto traps = claims_.under_way();
  EXPECT_FALSE(claims_.have_answers(traps));
  EXPECT_FALSE(claims_.quiescent());

  claims_.note_answered(5, claim(1));

  EXPECT_TRUE(claims_.have_answers(traps));
  EXPECT_TRUE(claims_.quiescent());
}

TEST_F(ClaimsAlone, ATrapThatTheGuestGaveUpAfterItWasTakenFiredLate) {
  EXPECT_FALSE(claims_.is_fired_late(1)) << "none was taken";
  ASSERT_TRUE(claims_.take(1, 0, claim(4)));
  EXPECT_FALSE(claims_.is_fired_late(1));

  region_.box(1).given_up = claim(4);

  EXPECT_TRUE(claims_.is_fired_late(1));
}

}  // namespace
}  // namespace ringside::vmm
