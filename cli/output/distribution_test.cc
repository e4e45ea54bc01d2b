#include "cli/output/distribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "dif/program/aggregate_function.h"

namespace ringside::cli {
namespace {

dif::Aggregation quantize() {
  dif::Aggregation aggregation;
  aggregation.function = dif::AggregateFunction::Quantize;
  return aggregation;
}

dif::Aggregation lquantize(std::int32_t base, std::uint16_t levels, std::uint16_t step) {
  dif::Aggregation aggregation;
  aggregation.function = dif::AggregateFunction::Lquantize;
  aggregation.parameters = dif::LinearParameters{base, levels, step}.pack();
  return aggregation;
}

std::string draw_distribution(const dif::Aggregation& aggregation,
                              const std::vector<std::int64_t>& words, std::int64_t normal,
                              bool zoom = false) {
  std::string text;
  append_distribution(text, {&aggregation, words, normal}, {.zoom = zoom});
  return text;
}

std::vector<std::int64_t> quantize_words() {
  return std::vector<std::int64_t>(127);
}

TEST(Distribution, QuantizeShowsOneEmptyBucketOnEachSide) {
  std::vector<std::int64_t> words = quantize_words();
  words[63] = 1;  // 0
  words[64] = 2;  // 1
  words[66] = 1;  // 4

  EXPECT_EQ(draw_distribution(quantize(), words, 1), R"(
           value  ------------- Distribution ------------- count    
              -1 |                                         0        
               0 |@@@@@@@@@@                               1        
               1 |@@@@@@@@@@@@@@@@@@@@                     2        
               2 |                                         0        
               4 |@@@@@@@@@@                               1        
               8 |                                         0        
)");
}

TEST(Distribution, NegativeValuesHaveNegativeLabels) {
  std::vector<std::int64_t> words = quantize_words();
  words[62] = 5;  // -1
  words[60] = 5;  // -4

  EXPECT_EQ(draw_distribution(quantize(), words, 1), R"(
           value  ------------- Distribution ------------- count    
              -8 |                                         0        
              -4 |@@@@@@@@@@@@@@@@@@@@                     5        
              -2 |                                         0        
              -1 |@@@@@@@@@@@@@@@@@@@@                     5        
               0 |                                         0        
)");
}

TEST(Distribution, CountsOfBothSignsHaveACentreLine) {
  std::vector<std::int64_t> words = quantize_words();
  words[64] = 1;
  words[65] = -1;

  EXPECT_EQ(draw_distribution(quantize(), words, 1), R"(
           value  ------------- Distribution ------------- count    
               0                     |                     0        
               1                     |@@@@@@@@@@           1        
               2           @@@@@@@@@@|                     -1       
               4                     |                     0        
)");
}

TEST(Distribution, LinearEndsAreOpen) {
  dif::Aggregation aggregation;
  aggregation.function = dif::AggregateFunction::Lquantize;
  aggregation.parameters = std::uint64_t{10} << 48 | std::uint64_t{2} << 32 | 0;  // 0..20 by 10
  const std::vector<std::int64_t> words{1, 0, 2, 1};

  EXPECT_EQ(draw_distribution(aggregation, words, 1), R"(
           value  ------------- Distribution ------------- count    
             < 0 |@@@@@@@@@@                               1        
               0 |                                         0        
              10 |@@@@@@@@@@@@@@@@@@@@                     2        
           >= 20 |@@@@@@@@@@                               1        
)");
}

TEST(Distribution, LinearBaseMayBeNegative) {
  dif::Aggregation aggregation;
  aggregation.function = dif::AggregateFunction::Lquantize;
  aggregation.parameters =
      std::uint64_t{1} << 48 | std::uint64_t{2} << 32 | static_cast<std::uint32_t>(-2);

  const std::vector<Bucket> buckets =
      buckets_of(aggregation, std::vector<std::int64_t>{0, 7, 0, 0});

  ASSERT_EQ(buckets.size(), 4u);
  EXPECT_EQ(buckets[0].label, "< -2");
  EXPECT_EQ(buckets[1].lower, -2);
  EXPECT_EQ(buckets[3].label, ">= 0");
}

TEST(Distribution, LogLinearStepsGrowWithTheMagnitude) {
  dif::Aggregation aggregation;
  aggregation.function = dif::AggregateFunction::Llquantize;
  // factor 10, magnitudes 0 and 1, 10 steps: 1..9 by 1, 10..90 by 10.
  aggregation.parameters = std::uint64_t{10} << 48 | std::uint64_t{1} << 16 | 10;

  const std::vector<Bucket> buckets = buckets_of(aggregation, std::vector<std::int64_t>(20));

  ASSERT_EQ(buckets.size(), 20u);
  EXPECT_EQ(buckets[0].label, "< 1");
  EXPECT_EQ(buckets[9].lower, 9);
  EXPECT_EQ(buckets[10].lower, 10);
  EXPECT_EQ(buckets[18].lower, 90);
  EXPECT_EQ(buckets[19].label, ">= 100");
}

TEST(Distribution, NormalizationDividesCountsNotBars) {
  std::vector<std::int64_t> words = quantize_words();
  words[64] = 10;

  EXPECT_EQ(draw_distribution(quantize(), words, 5), R"(
           value  ------------- Distribution ------------- count    
               0 |                                         0        
               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 2        
               2 |                                         0        
)");
}

TEST(Distribution, NoDataShowsTheBucketsAroundZero) {
  EXPECT_EQ(draw_distribution(quantize(), quantize_words(), 1), R"(
           value  ------------- Distribution ------------- count    
              -1 |                                         0        
               0 |                                         0        
               1 |                                         0        
)");
  EXPECT_TRUE(buckets_of(quantize(), std::vector<std::int64_t>(3)).empty());
}

TEST(Distribution, NoDataOfALogLinearOneShowsItsFirstBuckets) {
  dif::Aggregation aggregation;
  aggregation.function = dif::AggregateFunction::Llquantize;
  aggregation.parameters = dif::LogLinearParameters{10, 0, 3, 10}.pack();

  EXPECT_EQ(draw_distribution(aggregation,
                              std::vector<std::int64_t>(dif::aggregate_words(aggregation)), 1),
            "\n           value  ------------- Distribution ------------- count    \n"
            "             < 1 |                                         0        \n"
            "               1 |                                         0        \n");
}

TEST(Distribution, ZoomFillsTheLineWithTheLongestBar) {
  std::vector<std::int64_t> words = quantize_words();
  words[63] = 10;
  words[64] = 10;

  EXPECT_EQ(draw_distribution(quantize(), words, 1, true), R"(
           value  ------------- Distribution ------------- count    
              -1 |                                         0        
               0 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@   10       
               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@   10       
               2 |                                         0        
)");
}

TEST(Distribution, NegativeCountsAloneGrowToTheLeft) {
  std::vector<std::int64_t> words = quantize_words();
  words[63] = -4;

  EXPECT_EQ(draw_distribution(quantize(), words, 1), R"(
           value  ------------- Distribution ------------- count    
              -1                                         | 0        
               0 @@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@| -4       
               1                                         | 0        
)");
}

TEST(Distribution, PackedCellsHaveAnAsciiAndAUtf8Form) {
  std::string text;
  append_packed_cell(text, 0, 10, false);
  append_packed_cell(text, 1, 10, false);
  append_packed_cell(text, 5, 10, false);
  append_packed_cell(text, 10, 10, false);
  append_packed_cell(text, -1, 10, false);
  append_packed_cell(text, 10, 10, true);
  append_packed_cell(text, 1, 1000, true);

  EXPECT_EQ(text, " _xXv\xe2\x96\x88\xe2\x96\x81");
}

TEST(Distribution, TotalWeighsBucketsByValue) {
  std::vector<std::int64_t> words = quantize_words();
  words[66] = 3;  // 4
  words[62] = 2;  // -1

  EXPECT_EQ(distribution_total(quantize(), words), 10.0L);
}

TEST(Distribution, TotalTellsSumsApartThatADoubleHoldsAlike) {
  std::vector<std::int64_t> words = quantize_words();
  words[63 + 63] = 1;  // 2**62
  const long double before = distribution_total(quantize(), words);
  words[64] = 1;  // 1

  EXPECT_EQ(distribution_total(quantize(), words) - before, 1.0L);
}

TEST(Distribution, WhatLiesBeyondALinearRangeIsOneMoreThanItsEnds) {
  const dif::Aggregation aggregation = lquantize(0, 2, 5);

  EXPECT_EQ(distribution_total(aggregation, std::vector<std::int64_t>{1, 0, 0, 0}), -1.0L);
  EXPECT_EQ(distribution_total(aggregation, std::vector<std::int64_t>{0, 0, 2, 0}), 10.0L);
  EXPECT_EQ(distribution_total(aggregation, std::vector<std::int64_t>{0, 0, 0, 1}), 11.0L);
}

TEST(Distribution, ZerosOfALinearOneAreThoseOfItsBucket) {
  EXPECT_EQ(distribution_zeros(lquantize(-5, 2, 5), std::vector<std::int64_t>{1, 2, 3, 4}), 3);
  EXPECT_EQ(distribution_zeros(lquantize(1, 2, 5), std::vector<std::int64_t>{1, 2, 3, 4}), 1)
      << "what is less than 1 counts as 0";
  EXPECT_EQ(distribution_zeros(lquantize(-11, 2, 5), std::vector<std::int64_t>{1, 2, 3, 4}), 4)
      << "what is -1 or more counts as 0";
  EXPECT_EQ(distribution_zeros(lquantize(2, 2, 5), std::vector<std::int64_t>{1, 2, 3, 4}), 0);
}

std::string percentile(const dif::Aggregation& aggregation, const std::vector<std::int64_t>& words,
                       std::uint32_t millionths) {
  const auto range = percentile_range(aggregation, words, millionths);
  return range ? range_text(*range) : "none";
}

TEST(Percentile, IsInTheFirstBucketThatReachesItsShare) {
  std::vector<std::int64_t> words = quantize_words();
  words[64] = 50;  // 1
  words[66] = 49;  // 4 .. 7
  words[70] = 1;   // 64 .. 127

  EXPECT_EQ(percentile(quantize(), words, 1), "1");
  EXPECT_EQ(percentile(quantize(), words, 500'000), "1");
  EXPECT_EQ(percentile(quantize(), words, 500'001), "4 .. 7");
  EXPECT_EQ(percentile(quantize(), words, 990'000), "4 .. 7");
  EXPECT_EQ(percentile(quantize(), words, 990'001), "64 .. 127");
  EXPECT_EQ(percentile(quantize(), words, 1'000'000), "64 .. 127");
}

TEST(Percentile, KnowsTheEndsOfAllBuckets) {
  const auto only = [](const dif::Aggregation& aggregation, std::size_t bucket) {
    std::vector<std::int64_t> words(dif::aggregate_words(aggregation));
    words[bucket] = 1;
    return percentile(aggregation, words, 500'000);
  };
  EXPECT_EQ(only(quantize(), 0), "-9223372036854775808 .. -4611686018427387904");
  EXPECT_EQ(only(quantize(), 61), "-3 .. -2");
  EXPECT_EQ(only(quantize(), 62), "-1");
  EXPECT_EQ(only(quantize(), 63), "0");
  EXPECT_EQ(only(quantize(), 126), "4611686018427387904 .. 9223372036854775807");
  EXPECT_EQ(only(lquantize(-10, 2, 10), 0), "< -10");
  EXPECT_EQ(only(lquantize(-10, 2, 10), 1), "-10 .. -1");
  EXPECT_EQ(only(lquantize(-10, 2, 10), 3), ">= 10");
}

TEST(Percentile, TakesNoCountBelowZeroAndNoSumThatWraps) {
  std::vector<std::int64_t> words = quantize_words();
  EXPECT_EQ(percentile(quantize(), words, 500'000), "none");
  words[64] = -5;
  EXPECT_EQ(percentile(quantize(), words, 500'000), "none");
  words[65] = words[66] = words[67] = INT64_MAX;
  EXPECT_EQ(percentile(quantize(), words, 500'000), "4 .. 7");
  EXPECT_EQ(percentile(quantize(), {1, 2}, 500'000), "none") << "no words of a quantize()";
}

TEST(BarScale, Utf8BarsEndInEighthsOfABlock) {
  BarScale scale;
  const BarStyle blocks{.utf8 = true};
  for (const std::int64_t count : {1, 319}) scale.take(count);
  std::string text;

  scale.append_bar(text, 1, blocks);
  EXPECT_EQ(text, "|\xe2\x96\x8f" + std::string(39, ' '));
  text.clear();
  scale.append_bar(text, 319, blocks);

  std::string full = "|";
  for (int i = 0; i < 39; ++i) full += "\xe2\x96\x88";
  EXPECT_EQ(text, full + "\xe2\x96\x89");
}

TEST(BarScale, Utf8BarsToTheLeftHaveWholeBlocksOnly) {
  BarScale scale;
  const BarStyle blocks{.utf8 = true};
  for (const std::int64_t count : {-1, 19}) scale.take(count);
  std::string text;

  scale.append_bar(text, -1, blocks);

  EXPECT_EQ(text, std::string(19, ' ') + "\xe2\x96\x88|" + std::string(20, ' '));
}

/// Columns of a bar, and the eighths of a block at its end.
std::pair<unsigned, unsigned> eighths(const std::string& bar) {
  unsigned whole = 0, part = 0;
  for (std::size_t at = 0; (at = bar.find("\xe2\x96", at)) != std::string::npos; at += 3) {
    const auto last = static_cast<unsigned char>(bar[at + 2]);
    if (last == 0x88) ++whole;
    if (last > 0x88) part = 0x90U - last;
  }
  return {whole, part};
}

TEST(BarScale, Utf8BarsAreCutUnderAggzoomToo) {
  const BarStyle blocks{.zoom = true, .utf8 = true};
  BarScale scale;
  for (std::int64_t count = 0; count <= 320; ++count) scale.take(count);

  for (std::int64_t count = 0; count <= 320; ++count) {
    std::string bar;
    scale.append_bar(bar, count, blocks);
    const auto [whole, part] = eighths(bar);
    EXPECT_EQ(whole * 8 + part, count * 95 / 100) << count;
  }
}

TEST(BarScale, HistogramsHaveAWholeScaleUnderAggzoom) {
  const auto lengths = [](std::vector<std::int64_t> counts) {
    BarScale scale;
    scale.make_whole();
    for (const std::int64_t count : counts) scale.take(count);
    std::vector<std::int64_t> result;
    for (const std::int64_t count : counts) {
      std::string bar;
      scale.append_bar(bar, count, {.zoom = true});
      result.push_back(std::ranges::count(bar, '@'));
    }
    return result;
  };
  using Lengths = std::vector<std::int64_t>;
  EXPECT_EQ(lengths({1, 6}), (Lengths{7, 40})) << "of 6";
  EXPECT_EQ(lengths({15, 18}), (Lengths{33, 40})) << "of 18";
  EXPECT_EQ(lengths({20, 10, -1}), (Lengths{19, 10, 1})) << "of 21";
  EXPECT_EQ(lengths({-100, -20, -5}), (Lengths{38, 8, 2})) << "of 105";
}

}  // namespace
}  // namespace ringside::cli
