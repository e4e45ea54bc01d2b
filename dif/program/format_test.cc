#include "dif/program/format.h"

#include <gtest/gtest.h>

namespace ringside::dif {
namespace {

TEST(Format, SplitsLiteralsFromConversions) {
  const auto parsed = parse_format("pid %d ran %s\n");

  ASSERT_TRUE(parsed);
  ASSERT_EQ(parsed->size(), 3u);
  EXPECT_EQ((*parsed)[0].literal, "pid ");
  EXPECT_EQ((*parsed)[0].kind, 'd');
  EXPECT_EQ((*parsed)[1].literal, " ran ");
  EXPECT_EQ((*parsed)[1].kind, 's');
  EXPECT_EQ((*parsed)[2].literal, "\n");
  EXPECT_EQ((*parsed)[2].kind, 0);
}

TEST(Format, ReadsFlagsWidthPrecisionAndModifiers) {
  const auto parsed = parse_format("%-+8.3llx|%*.*d|%05u|%.s");

  ASSERT_TRUE(parsed);
  ASSERT_EQ(parsed->size(), 4u);
  EXPECT_EQ((*parsed)[0].flags, "-+");
  EXPECT_EQ((*parsed)[0].width, 8);
  EXPECT_EQ((*parsed)[0].precision, 3);
  EXPECT_EQ((*parsed)[0].modifiers, "ll");
  EXPECT_EQ((*parsed)[0].kind, 'x');
  EXPECT_TRUE((*parsed)[1].star_width);
  EXPECT_TRUE((*parsed)[1].star_precision);
  EXPECT_EQ((*parsed)[2].flags, "0");
  EXPECT_EQ((*parsed)[2].width, 5);
  EXPECT_FALSE((*parsed)[3].precision);
}

TEST(Format, MarksAggregationConversions) {
  const auto parsed = parse_format("%-20s %@8d");

  ASSERT_TRUE(parsed);
  EXPECT_FALSE((*parsed)[0].takes_aggregation);
  EXPECT_TRUE((*parsed)[1].takes_aggregation);
  EXPECT_EQ((*parsed)[1].width, 8);
}

TEST(Format, TakesTheAggregationSignAnywhereBeforeTheLetter) {
  for (const char* format : {"%@-8.2d", "%-@8.2d", "%-8@.2d", "%-8.2@d"}) {
    const auto parsed = parse_format(format);

    ASSERT_TRUE(parsed) << format;
    EXPECT_TRUE(parsed->front().takes_aggregation) << format;
    EXPECT_EQ(parsed->front().flags, "-") << format;
    EXPECT_EQ(parsed->front().width, 8) << format;
    EXPECT_EQ(parsed->front().precision, 2) << format;
  }
}

TEST(Format, QuestionMarkIsTheWidthOfAPointer) {
  const auto parsed = parse_format("%?x|%0?p|%-?@x|%?4x");

  ASSERT_TRUE(parsed);
  EXPECT_EQ((*parsed)[0].width, 16);
  EXPECT_EQ((*parsed)[1].width, 16);
  EXPECT_EQ((*parsed)[1].flags, "0");
  EXPECT_EQ((*parsed)[2].width, 16);
  EXPECT_EQ((*parsed)[2].flags, "-");
  EXPECT_TRUE((*parsed)[2].takes_aggregation);
  EXPECT_EQ((*parsed)[3].width, 4);
}

TEST(Format, DoubledPercentIsText) {
  const auto parsed = parse_format("100%% of %d%%");

  ASSERT_TRUE(parsed);
  ASSERT_EQ(parsed->size(), 2u);
  EXPECT_EQ((*parsed)[0].literal, "100% of ");
  EXPECT_EQ((*parsed)[1].literal, "%");
}

TEST(Format, EmptyFormatHasNoParts) {
  EXPECT_TRUE(parse_format("")->empty());
}

TEST(Format, RefusesWhatNoConversionIs) {
  EXPECT_EQ(parse_format("%d %q").error().message,
            "format conversion #2 uses unknown character 'q'");
  EXPECT_EQ(parse_format("50%").error().message, "format ends within a conversion");
  EXPECT_EQ(parse_format("%99999999999d").error().message,
            "format conversion #1 is wider than 65535 columns");
  EXPECT_FALSE(parse_format("%-"));
}

}  // namespace
}  // namespace ringside::dif
