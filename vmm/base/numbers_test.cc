#include "vmm/base/numbers.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string_view>

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

TEST(Numbers, AreReadFromAllOfAText) {
  EXPECT_EQ(parse_number<int>("12"), 12);
  EXPECT_EQ(parse_number<int>("-12"), -12);
  EXPECT_EQ(parse_number<std::uint64_t>("1F", 16), 0x1fu);
  EXPECT_EQ(parse_number<std::uint64_t>("18446744073709551615"), UINT64_MAX);
  for (const std::string_view none : {"", " 1", "1 ", "+1", "0x1", "1a", "a"}) {
    EXPECT_EQ(parse_number<std::uint64_t>(none), std::nullopt) << none;
  }
}

TEST(Numbers, ThatTheTypeCannotHoldAreNone) {
  EXPECT_EQ(parse_number<unsigned char>("255"), 255);
  EXPECT_EQ(parse_number<unsigned char>("256"), std::nullopt);
  EXPECT_EQ(parse_number<unsigned char>("-1"), std::nullopt);
  EXPECT_EQ(parse_number<std::uint64_t>("18446744073709551616"), std::nullopt);
  EXPECT_EQ(parse_number<int>("-2147483649"), std::nullopt);
}

TEST(Numbers, AreTakenOffTheBeginOfAText) {
  std::string_view text = "16M";
  EXPECT_EQ(take_number<unsigned>(text), 16u);
  EXPECT_EQ(text, "M");

  EXPECT_EQ(take_number<unsigned>(text), std::nullopt);
  EXPECT_EQ(text, "M") << "nothing was taken";

  std::string_view large = "99999999999 left";
  EXPECT_EQ(take_number<std::uint32_t>(large), std::nullopt);
  EXPECT_EQ(large, "99999999999 left") << "nothing was taken";
}

}  // namespace
}  // namespace ringside
