#include "vmm/base/numbers.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace ringside {
namespace {

TEST(Numbers, RoundsToMultiples) {
  EXPECT_EQ(round_up(0u, 8), 0u);
  EXPECT_EQ(round_up(1u, 8), 8u);
  EXPECT_EQ(round_up(8u, 8), 8u);
  EXPECT_EQ(round_down(15u, 8), 8u);
  EXPECT_EQ(round_up(UINT64_MAX, 8), 0u) << "there is none";
}

TEST(Numbers, DividesIntoPiecesOfWhichTheLastMayBeShort) {
  EXPECT_EQ(divide_up(0u, 512), 0u);
  EXPECT_EQ(divide_up(1u, 512), 1u);
  EXPECT_EQ(divide_up(512u, 512), 1u);
  EXPECT_EQ(divide_up(513u, 512), 2u);
  EXPECT_EQ(divide_up(7u, 3), 3u) << "by any number";
}

}  // namespace
}  // namespace ringside
