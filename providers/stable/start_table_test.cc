// StartTable by key: the first, the last, words that add up, and more at a time than there is room
// for.
#include "providers/stable/start_table.h"

#include <gtest/gtest.h>

namespace ringside::providers {
namespace {

constexpr std::uint64_t kKey = 0xffff'8880'0000'1000;

class StartTableTest : public testing::Test {
 protected:
  std::atomic<std::uint64_t> displaced_ = 0;
  StartTable all_{displaced_};
};

TEST_F(StartTableTest, EndOnce) {
  all_.put(kKey, {{1, 2, 3}});

  const auto start = all_.take(kKey);

  ASSERT_TRUE(start);
  EXPECT_EQ(start->words[2], 3u);
  EXPECT_FALSE(all_.take(kKey)) << "it has ended";
  EXPECT_FALSE(all_.take(kKey + 8)) << "never began";
  EXPECT_EQ(displaced_, 0u);
}

TEST_F(StartTableTest, TheLastPutCountsOrTheFirst) {
  all_.put(kKey, {{1}});
  all_.put(kKey, {{2}});
  EXPECT_EQ(all_.take(kKey)->words[0], 2u);

  all_.put_first(kKey, {{3}}, 0);
  all_.put_first(kKey, {{4}}, 0);
  EXPECT_EQ(all_.take(kKey)->words[0], 3u);
}

TEST_F(StartTableTest, WordsThatAddGetTheBitsOfLaterOnes) {
  constexpr unsigned kSecond = 0b010;
  all_.put_first(kKey, {{1, 0b01, 1}}, kSecond);
  all_.put_first(kKey, {{2, 0b10, 2}}, kSecond);
  EXPECT_EQ(all_.take(kKey)->words, (decltype(Start::words){1, 0b11, 1}));

  all_.put_first(kKey, {{5}}, kSecond);
  EXPECT_EQ(all_.take(kKey)->words, (decltype(Start::words){5, 0, 0})) << "of the next one";
}

TEST_F(StartTableTest, OfTooManyTheNewestAreKnown) {
  for (std::uint64_t n = 0; n < 1'000'000; ++n) all_.put(kKey + n * 64, {{n}});

  EXPECT_EQ(all_.take(kKey + 999'999 * 64)->words[0], 999'999u);
  unsigned known = 0;
  for (std::uint64_t n = 0; n < 999'999; ++n) known += all_.take(kKey + n * 64).has_value();
  EXPECT_GT(known, 1000u);
  EXPECT_LT(known, 10'000u);
  EXPECT_EQ(displaced_, 999'999u - known);
}

TEST_F(StartTableTest, KeysThatNobodyHasBeginNothing) {
  for (const std::uint64_t key : {0u, 1u}) {
    all_.put(key, {{1}});
    all_.put_first(key, {{1}}, 0);
    EXPECT_FALSE(all_.take(key));
  }
}

}  // namespace
}  // namespace ringside::providers
