// StartTable by key: the first, the last, the spoilt, and more at a time than there is room for.
#include "providers/stable/start_table.h"

#include <gtest/gtest.h>

namespace ringside::providers {
namespace {

constexpr std::uint64_t kKey = 0xffff'8880'0000'1000;

TEST(StartTable, EndOnce) {
  StartTable all;
  all.put(kKey, {.time = 7, .words = {1, 2, 3}});

  const auto start = all.take(kKey);

  ASSERT_TRUE(start);
  EXPECT_EQ(start->time, 7u);
  EXPECT_EQ(start->words[2], 3u);
  EXPECT_FALSE(all.take(kKey)) << "it has ended";
  EXPECT_FALSE(all.take(kKey + 8)) << "never began";
}

TEST(StartTable, TheLastPutCountsOrTheFirst) {
  StartTable all;
  all.put(kKey, {.time = 1});
  all.put(kKey, {.time = 2});
  EXPECT_EQ(all.take(kKey)->time, 2u);

  all.put_first(kKey, {.time = 3});
  all.put_first(kKey, {.time = 4});
  EXPECT_EQ(all.take(kKey)->time, 3u);
}

TEST(StartTable, OneIsSpoiltBeforeOrAfter) {
  StartTable all;
  all.put_first(kKey, {.time = 1});
  all.put_first(kKey, {.time = 2, .is_spoilt = true});
  EXPECT_TRUE(all.take(kKey)->is_spoilt);

  all.put_first(kKey, {.time = 1, .is_spoilt = true});
  all.put_first(kKey, {.time = 2});
  EXPECT_TRUE(all.take(kKey)->is_spoilt);
  all.put_first(kKey, {.time = 5});
  EXPECT_FALSE(all.take(kKey)->is_spoilt) << "the next one is not";
}

TEST(StartTable, OfTooManyTheNewestAreKnown) {
  StartTable all;
  for (std::uint64_t n = 0; n < 1'000'000; ++n) all.put(kKey + n * 64, {.time = n});

  EXPECT_EQ(all.take(kKey + 999'999 * 64)->time, 999'999u);
  unsigned known = 0;
  for (std::uint64_t n = 0; n < 999'999; ++n) known += all.take(kKey + n * 64).has_value();
  EXPECT_GT(known, 1000u);
  EXPECT_LT(known, 10'000u);
}

TEST(StartTable, KeysThatNobodyHasBeginNothing) {
  StartTable all;
  for (const std::uint64_t key : {0u, 1u}) {
    all.put(key, {.time = 1});
    all.put_first(key, {.time = 1});
    EXPECT_FALSE(all.take(key));
  }
}

}  // namespace
}  // namespace ringside::providers
