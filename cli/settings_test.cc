#include "cli/settings.h"

#include <gtest/gtest.h>

#include "cli/quantities.h"

namespace ringside::cli {
namespace {

using std::chrono::nanoseconds;

TEST(Size, TakesEachSuffixInEitherCase) {
  EXPECT_EQ(parse_size("12"), 12u);
  EXPECT_EQ(parse_size("4k"), 4096u);
  EXPECT_EQ(parse_size("3M"), 3u << 20);
  EXPECT_EQ(parse_size("2g"), std::uint64_t{2} << 30);
  EXPECT_EQ(parse_size("1T"), std::uint64_t{1} << 40);
}

TEST(Size, RefusesWhatIsNotOne) {
  for (const char* bad : {"", "k", "4q", "4kk", "-1", " 4", "99999999999t"}) {
    EXPECT_FALSE(parse_size(bad)) << bad;
  }
}

TEST(Rate, IsAnIntervalOrAFrequency) {
  EXPECT_EQ(parse_rate("100hz"), nanoseconds(10'000'000));
  EXPECT_EQ(parse_rate("4"), nanoseconds(250'000'000));
  EXPECT_EQ(parse_rate("5ns"), nanoseconds(5));
  EXPECT_EQ(parse_rate("5usec"), nanoseconds(5'000));
  EXPECT_EQ(parse_rate("10ms"), nanoseconds(10'000'000));
  EXPECT_EQ(parse_rate("2m"), nanoseconds(120'000'000'000));
  EXPECT_EQ(parse_rate("1d"), nanoseconds(86'400'000'000'000));
}

TEST(Rate, RefusesZeroAndUnknownUnits) {
  for (const char* bad : {"0", "0hz", "0ms", "5x", "hz", "99999999999999d"}) {
    EXPECT_FALSE(parse_rate(bad)) << bad;
  }
}

TEST(Number, TakesThreeBasesAndNothingElse) {
  EXPECT_EQ(parse_number("10"), 10u);
  EXPECT_EQ(parse_number("0x10"), 16u);
  EXPECT_EQ(parse_number("010"), 8u);
  EXPECT_EQ(parse_number("0"), 0u);
  for (const char* bad : {"", "0x", "1x", "-1", "+1", "09"}) EXPECT_FALSE(parse_number(bad)) << bad;
}

TEST(Option, SetsByDtracesName) {
  Settings settings;

  ASSERT_TRUE(apply_option_argument(settings, "quiet"));
  ASSERT_TRUE(apply_option_argument(settings, "bufsize=64k"));
  ASSERT_TRUE(apply_option_argument(settings, "strsize=1k"));
  ASSERT_TRUE(apply_option_argument(settings, "switchrate=10hz"));
  ASSERT_TRUE(apply_option_argument(settings, "aggsortkeypos=2"));

  EXPECT_TRUE(settings.quiet);
  EXPECT_EQ(settings.engine.buffer_size, 64u << 10);
  EXPECT_EQ(settings.engine.string_size, 1024u);
  EXPECT_EQ(settings.switch_interval, nanoseconds(100'000'000));
  EXPECT_EQ(settings.sort_key_position, 2u);
}

TEST(Option, FlagCanBeTurnedOffAgain) {
  Settings settings;
  ASSERT_TRUE(apply_option_argument(settings, "quiet=on"));
  ASSERT_TRUE(apply_option_argument(settings, "quiet=off"));

  EXPECT_FALSE(settings.quiet);
  EXPECT_FALSE(apply_option_argument(settings, "quiet=perhaps"));
}

TEST(Option, UnknownAndUnsupportedAreDifferentErrors) {
  Settings settings;

  const auto unknown = apply_option_argument(settings, "nonesuch=1");
  const auto unsupported = apply_option_argument(settings, "bufpolicy=ring");

  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message, "there is no option 'nonesuch'");
  ASSERT_FALSE(unsupported);
  EXPECT_EQ(unsupported.error().message, "option 'bufpolicy' is not supported yet");
}

TEST(Option, OnlyDynamicOnesChangeWhileTracing) {
  Settings settings;

  EXPECT_TRUE(apply_option(settings, "quiet", "", SettingPhase::Running));
  const auto fixed = apply_option(settings, "bufsize", "1m", SettingPhase::Running);

  EXPECT_TRUE(settings.quiet);
  ASSERT_FALSE(fixed);
  EXPECT_EQ(fixed.error().message, "option 'bufsize' cannot change while tracing");
}

TEST(Option, StringSizeHasLimits) {
  Settings settings;
  EXPECT_FALSE(apply_option_argument(settings, "strsize=1"));
  EXPECT_TRUE(apply_option_argument(settings, "strsize=2"));
  EXPECT_TRUE(apply_option_argument(settings, "strsize=64k"));
  EXPECT_FALSE(apply_option_argument(settings, "strsize=65537"));
}

}  // namespace
}  // namespace ringside::cli
