// StartTable by key: the first, the last, words that add up, and more at a time than there is room
// for.
#include "providers/stable/start_table.h"

#include <gtest/gtest.h>

namespace ringside::providers {
namespace {

constexpr std::uint64_t kKey = 0xffff'8880'0000'1000;

TEST(StartTable, EndOnce) {
  StartTable all;
  all.put(kKey, {{1, 2, 3}});

  const auto start = all.take(kKey);

  ASSERT_TRUE(start);
  EXPECT_EQ(start->words[2], 3u);
  EXPECT_FALSE(all.take(kKey)) << "it has ended";
  EXPECT_FALSE(all.take(kKey + 8)) << "never began";
}

TEST(StartTable, TheLastPutCountsOrTheFirst) {
  StartTable all;
  all.put(kKey, {{1}});
  all.put(kKey, {{2}});
  EXPECT_EQ(all.take(kKey)->words[0], 2u);

  all.put_first(kKey, {{3}}, 0);
  all.put_first(kKey, {{4}}, 0);
  EXPECT_EQ(all.take(kKey)->words[0], 3u);
}

TEST(StartTable, WordsThatAddGetTheBitsOfLaterOnes) {
  constexpr unsigned kSecond = 0b010;
  StartTable all;
  all.put_first(kKey, {{1, 0b01, 1}}, kSecond);
  all.put_first(kKey, {{2, 0b10, 2}}, kSecond);
  EXPECT_EQ(all.take(kKey)->words, (decltype(Start::words){1, 0b11, 1}));

  all.put_first(kKey, {{5}}, kSecond);
  EXPECT_EQ(all.take(kKey)->words, (decltype(Start::words){5, 0, 0})) << "of the next one";
}

TEST(StartTable, OfTooManyTheNewestAreKnown) {
  StartTable all;
  for (std::uint64_t n = 0; n < 1'000'000; ++n) all.put(kKey + n * 64, {{n}});

  EXPECT_EQ(all.take(kKey + 999'999 * 64)->words[0], 999'999u);
  unsigned known = 0;
  for (std::uint64_t n = 0; n < 999'999; ++n) known += all.take(kKey + n * 64).has_value();
  EXPECT_GT(known, 1000u);
  EXPECT_LT(known, 10'000u);
}

TEST(StartTable, KeysThatNobodyHasBeginNothing) {
  StartTable all;
  for (const std::uint64_t key : {0u, 1u}) {
    all.put(key, {{1}});
    all.put_first(key, {{1}}, 0);
    EXPECT_FALSE(all.take(key));
  }
}

}  // namespace
}  // namespace ringside::providers
