#include "dif/engine/aggregate.h"

#include <gtest/gtest.h>

#include "dif/program/aggregate_function.h"

namespace ringside::dif {
namespace {

std::span<const std::byte> key(const std::uint64_t& value) {
  return std::as_bytes(std::span(&value, 1));
}

/// The words that the function keeps of these values.
std::vector<std::int64_t> keep(Aggregation aggregation, std::vector<std::int64_t> values) {
  std::vector<std::int64_t> words(aggregate_words(aggregation));
  bool fresh = true;
  for (const std::int64_t value : values) {
    aggregate_value(aggregation, words, static_cast<std::uint64_t>(value), 1, fresh);
    fresh = false;
  }
  return words;
}

Aggregation of(AggregateFunction function, std::uint64_t parameters = 0) {
  return {"", function, {}, parameters};
}

TEST(AggregateFunction, ScalarsKeepWhatTheirNameSays) {
  const std::vector<std::int64_t> values{5, -3, 10};
  using Words = std::vector<std::int64_t>;

  EXPECT_EQ(keep(of(AggregateFunction::Count), values), Words{3});
  EXPECT_EQ(keep(of(AggregateFunction::Sum), values), Words{12});
  EXPECT_EQ(keep(of(AggregateFunction::Min), values), Words{-3});
  EXPECT_EQ(keep(of(AggregateFunction::Max), {-5, -3}), Words{-3}) << "not the initial zero";
  EXPECT_EQ(keep(of(AggregateFunction::Avg), values), (Words{3, 12}));
  EXPECT_EQ(keep(of(AggregateFunction::Stddev), values), (Words{3, 12, 134, 0}));
}

TEST(AggregateFunction, SumOfSquaresIsWide) {
  const auto words = keep(of(AggregateFunction::Stddev), {INT64_MIN, INT64_MIN});
  EXPECT_EQ(words[2], 0);
  EXPECT_EQ(words[3], INT64_MIN) << "twice 2^126 is 2^127";
}

TEST(AggregateFunction, QuantizeHasPowersOfTwo) {
  EXPECT_EQ(quantize_bucket(0), kQuantizeZero);
  EXPECT_EQ(quantize_value(quantize_bucket(1)), 1);
  EXPECT_EQ(quantize_value(quantize_bucket(1023)), 512);
  EXPECT_EQ(quantize_value(quantize_bucket(1024)), 1024);
  EXPECT_EQ(quantize_value(quantize_bucket(-1)), -1);
  EXPECT_EQ(quantize_value(quantize_bucket(-1000)), -512);
  EXPECT_EQ(quantize_bucket(INT64_MAX), kQuantizeBuckets - 1);
  EXPECT_EQ(quantize_bucket(INT64_MIN), 0u);
}

TEST(AggregateFunction, LquantizeHasEdges) {
  const LinearParameters p{-10, 4, 5};  // -10, -5, 0, 5, up to 10
  EXPECT_EQ(LinearParameters::unpack(p.pack()).base, -10);
  EXPECT_EQ(p.buckets(), 6u);
  EXPECT_EQ(p.bucket(-11), 0u);
  EXPECT_EQ(p.bucket(-10), 1u);
  EXPECT_EQ(p.bucket(9), 4u);
  EXPECT_EQ(p.bucket(10), 5u);
  EXPECT_EQ(p.bucket(INT64_MAX), 5u);
  EXPECT_EQ(p.bucket(INT64_MIN), 0u);
  EXPECT_EQ(p.lower_bound(5), 10);
}

TEST(AggregateFunction, LlquantizeHasEveryBucketOnce) {
  const LogLinearParameters p{10, 0, 2, 20};
  ASSERT_TRUE(p.valid());
  EXPECT_EQ(p.bucket(0), 0u);
  EXPECT_EQ(p.bucket(1), 1u);
  EXPECT_EQ(p.bucket(1000), p.buckets() - 1);
  EXPECT_EQ(p.bucket(INT64_MAX), p.buckets() - 1);
  for (std::size_t b = 1; b < p.buckets(); ++b) {
    EXPECT_EQ(p.bucket(p.lower_bound(b)), b);
    EXPECT_EQ(p.bucket(p.lower_bound(b) - 1), b - 1);
  }
}

TEST(AggregateFunction, MergingEqualsHavingSeenAllValues) {
  for (const Aggregation& a :
       {of(AggregateFunction::Count), of(AggregateFunction::Min), of(AggregateFunction::Max),
        of(AggregateFunction::Sum), of(AggregateFunction::Avg), of(AggregateFunction::Stddev),
        of(AggregateFunction::Quantize),
        of(AggregateFunction::Lquantize, LinearParameters{0, 10, 10}.pack())}) {
    auto into = keep(a, {1, -50, INT64_MAX});
    aggregate_merge(a, into, keep(a, {30, 1 << 20}));
    EXPECT_EQ(into, keep(a, {1, -50, INT64_MAX, 30, 1 << 20})) << static_cast<int>(a.function);
  }
}

TEST(AggregationBuffer, KeepsKeysOfDifferentAggregationsApart) {
  AggregationBuffer buffer(64 << 10);
  const std::uint64_t one = 1;
  buffer.find_or_add(0, key(one), 1).words[0] = 10;
  buffer.set_order(1);
  buffer.find_or_add(1, key(one), 2).words[1] = 20;
  buffer.set_order(2);

  const auto again = buffer.find_or_add(0, key(one), 1);

  EXPECT_FALSE(again.fresh);
  EXPECT_EQ(again.words[0], 10);
  std::vector<std::uint64_t> orders;
  buffer.for_each([&](const AggregationBuffer::Entry& entry) { orders.push_back(entry.order); });
  EXPECT_EQ(orders, (std::vector<std::uint64_t>{1, 2}));
}

TEST(AggregationBuffer, IsFullAtItsSizeAndEmptyAfterClear) {
  AggregationBuffer buffer(4096);
  std::uint64_t added = 0;
  while (!buffer.find_or_add(0, key(added), 1).words.empty()) {
    buffer.find_or_add(0, key(added), 1).words[0] = -1;
    ++added;
  }
  EXPECT_EQ(added, (4096u - 8) / 48);

  buffer.clear();

  for (std::uint64_t i = 0; i < added; ++i) {
    const auto slot = buffer.find_or_add(0, key(i), 1);
    ASSERT_TRUE(slot.fresh);
    EXPECT_EQ(slot.words[0], 0) << "nothing is left of before";
  }
}

TEST(Percentiles, AreReadAsMillionths) {
  using Numbers = std::vector<std::uint32_t>;
  EXPECT_EQ(parse_percentiles("50,99.9,100,0.0001"), (Numbers{500'000, 999'000, 1'000'000, 1}));
  EXPECT_EQ(parse_percentiles("050.5000"), Numbers{505'000});
  for (const char* bad : {"", ",", "50,", ",50", "0", "0.0", "100.0001", "101", "-1", "1e1", "50 ",
                          "5.", ".5", "1.00000", "1000", "5.5.5", "99999999999999999999"}) {
    EXPECT_TRUE(parse_percentiles(bad).empty()) << bad;
  }
  std::string many = "1";
  for (std::size_t i = 1; i < kMostPercentiles; ++i) many += ",1";
  EXPECT_EQ(parse_percentiles(many).size(), kMostPercentiles);
  EXPECT_TRUE(parse_percentiles(many + ",1").empty());
}

}  // namespace
}  // namespace ringside::dif
