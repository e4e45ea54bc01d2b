#include "dif/evaluate/dynamic_table.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <set>

namespace ringside::dif {
namespace {

/// Memory that erase() gave up is free after two passes.
void clean_all(DynamicTable& table) {
  table.clean();
  table.clean();
}

std::span<const std::byte> key(const std::uint64_t& value) {
  return std::as_bytes(std::span(&value, 1));
}

TEST(DynamicTable, FindsWhatWasAddedAndForgetsWhatWasErased) {
  DynamicTable table(64 << 10);
  for (std::uint64_t i = 0; i < 100; ++i) {
    const auto at = table.find_or_add(key(i), 8);
    ASSERT_TRUE(at);
    std::memcpy(table.arena().data() + *at, &i, sizeof i);
  }
  for (std::uint64_t i = 0; i < 100; i += 2) table.erase(key(i));

  for (std::uint64_t i = 0; i < 100; ++i) {
    const auto at = table.find(key(i));
    ASSERT_EQ(at.has_value(), i % 2 == 1) << i;
    if (!at) continue;
    std::uint64_t value;
    std::memcpy(&value, table.arena().data() + *at, sizeof value);
    EXPECT_EQ(value, i);
  }
}

TEST(DynamicTable, ErasingOneOfThoseThatShareABucketLeavesTheOthers) {
  DynamicTable table(16 << 10);  // 512 buckets
  constexpr std::uint64_t kMany = 300;
  for (std::uint64_t i = 0; i < kMany; ++i) ASSERT_TRUE(table.find_or_add(key(i), 8));
  for (std::uint64_t i = 0; i < kMany; i += 3) table.erase(key(i));

  for (std::uint64_t i = 0; i < kMany; ++i) {
    EXPECT_EQ(table.find(key(i)).has_value(), i % 3 != 0) << i;
  }
}

TEST(DynamicTable, AGuestCannotPrepareKeysThatCollideWhateverTheSeed) {
  // Made a factor of the hash 0, and so forgot all words before it.
  constexpr std::uint64_t kCancels = 0xd6e8'feb8'6659'fd93;
  const std::uint64_t seed = DynamicTable::random_seed();
  std::set<std::uint32_t> hashes;
  for (std::uint64_t i = 0; i < 64; ++i) {
    const std::array<std::uint64_t, 2> words{i, kCancels};
    hashes.insert(hash_bytes(std::as_bytes(std::span(words)), seed));
  }

  EXPECT_GT(hashes.size(), 60u);
}

TEST(DynamicTable, EveryByteOfAKeyCountsForItsHash) {
  const std::uint64_t seed = DynamicTable::random_seed();
  std::set<std::uint32_t> hashes;
  const auto add = [&](std::span<const std::byte> bytes) {
    hashes.insert(hash_bytes(bytes, seed));
  };
  std::array<std::byte, 23> bytes{};
  add(bytes);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    bytes.fill(std::byte{0});
    bytes[at] = std::byte{1};
    add(bytes);
  }
  bytes.fill(std::byte{0});
  for (std::size_t size = 0; size < bytes.size(); ++size) add(std::span(bytes).first(size));

  EXPECT_EQ(hashes.size(), 47u) << "of 47 keys two seldom have the same";
}

TEST(DynamicTable, OneKeyHasAnElementInEachPart) {
  DynamicTable table(64 << 10);
  const std::uint64_t one = 1;
  std::set<std::uint64_t> places;
  for (unsigned part = 0; part <= DynamicTable::kArrays; ++part) {
    EXPECT_FALSE(table.find(key(one), part)) << part;
    const auto at = table.find_or_add(key(one), 8, {part, 0});
    ASSERT_TRUE(at);
    places.insert(*at);
  }
  EXPECT_EQ(places.size(), DynamicTable::kArrays + 1u);
  table.erase(key(one), {3, 0});
  for (unsigned part = 0; part <= DynamicTable::kArrays; ++part) {
    EXPECT_EQ(table.find(key(one), part).has_value(), part != 3) << part;
  }

  std::set<unsigned> parts;
  for (std::uint64_t thread = 0; thread < 1000; ++thread) parts.insert(table.part_of(thread));
  EXPECT_EQ(parts.size(), SharedLocks::kShards);
  EXPECT_LT(*parts.rbegin(), DynamicTable::kArrays);
}

TEST(DynamicTable, AVcpuTakesWhatAnotherOneErased) {
  DynamicTable table(4096, 3);
  std::uint64_t added = 0;
  while (table.find_or_add(key(added), 8)) ++added;
  const std::uint64_t first = 0, second = 1, fresh = 1 << 20;
  const auto add = [&] {
    return table.find_or_add(key(fresh), 8, {DynamicTable::kArrays, 2}).has_value();
  };
  table.erase(key(first), {DynamicTable::kArrays, 1});
  EXPECT_EQ(table.full_because(), DynamicTable::Full::Dirty);
  table.clean(0);
  EXPECT_EQ(table.full_because(), DynamicTable::Full::Dirty) << "each one's are cleaned alone";
  table.clean(1);
  EXPECT_EQ(table.full_because(), DynamicTable::Full::Rinsing);
  EXPECT_FALSE(add());
  table.clean(1);

  EXPECT_TRUE(add());
  EXPECT_EQ(table.full_because(), DynamicTable::Full::Used);
  table.erase(key(second), {DynamicTable::kArrays, 2});
  table.erase(key(fresh), {DynamicTable::kArrays, 0});
  table.clean(2);
  EXPECT_EQ(table.full_because(), DynamicTable::Full::Dirty) << "of one of them";
  table.clean(2);
  EXPECT_TRUE(table.find_or_add(key(second), 8, {DynamicTable::kArrays, 0})) << "the last one's";
}

TEST(DynamicTable, IsFullAtItsSizeAndUsableAgainAfterErase) {
  DynamicTable table(4096);
  std::uint64_t added = 0;
  while (table.find_or_add(key(added), 8)) ++added;
  EXPECT_GE(added, 60u);
  EXPECT_LE(added, 4096u / 48);

  const std::uint64_t first = 0, fresh = 1 << 20;
  table.erase(key(first));
  clean_all(table);

  EXPECT_TRUE(table.find_or_add(key(fresh), 8));
  EXPECT_FALSE(table.find(key(first)));
}

TEST(DynamicTable, MemoryFreedInSeveralPassesIsAllUsableAgain) {
  DynamicTable table(4096);
  std::uint64_t added = 0;
  while (table.find_or_add(key(added), 8)) ++added;
  for (std::uint64_t i = 0; i < added; i += 2) table.erase(key(i));
  clean_all(table);
  for (std::uint64_t i = 1; i < added; i += 2) table.erase(key(i));
  clean_all(table);

  for (std::uint64_t i = 0; i < added; ++i) EXPECT_TRUE(table.find_or_add(key(i), 8)) << i;
}

TEST(DynamicTable, EachElementHasTheRoomThatItAskedFor) {
  DynamicTable table(1 << 20);
  std::uint64_t next = 0;
  std::set<std::pair<std::size_t, std::size_t>> taken;  // from, to
  for (const std::size_t size : {1, 8, 24, 40, 60, 100, 150, 200, 300, 500, 900, 2000, 4000}) {
    for (int n = 0; n < 3; ++n) {
      const auto at = table.find_or_add(key(++next), size);
      ASSERT_TRUE(at) << size;
      taken.emplace(*at, *at + size);
    }
  }
  std::size_t end = 0;
  for (const auto& [from, to] : taken) {
    EXPECT_GE(from, end) << "two elements overlap";
    end = to;
  }
}

TEST(DynamicTable, ReusedMemoryIsZero) {
  DynamicTable table(4096);
  const std::uint64_t one = 1, two = 2;
  const auto at = table.find_or_add(key(one), 64);
  std::memset(table.arena().data() + *at, 0xff, 64);
  table.erase(key(one));
  clean_all(table);

  const auto again = table.find_or_add(key(two), 64);

  ASSERT_TRUE(again);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(table.arena()[*again + i], std::byte{0});
}

TEST(DynamicTable, ASmallElementMayTakeALargeFreedChunk) {
  DynamicTable table(4096);
  std::uint64_t added = 0;
  while (table.find_or_add(key(added), 500)) ++added;
  ASSERT_GE(added, 3u);
  const std::uint64_t small = 1000, gone = 1;
  while (table.find_or_add(key(small + added), 8)) ++added;  // the rest of the arena

  table.erase(key(gone));
  clean_all(table);

  EXPECT_TRUE(table.find_or_add(key(small), 8));
}

TEST(DynamicTable, ALargeElementTakesALargeFreedChunk) {
  DynamicTable table(16 << 10);
  std::uint64_t large = 0;
  while (table.find_or_add(key(large), 1000)) ++large;
  ASSERT_GE(large, 8u);
  for (int round = 0; round < 2; ++round) {
    for (std::uint64_t i = 0; i < large; ++i) table.erase(key(i));
    clean_all(table);
    for (std::uint64_t i = 0; i < large; ++i) EXPECT_TRUE(table.find_or_add(key(i), 1000)) << i;
  }
}

TEST(DynamicTable, ErasedMemoryIsDirtyThenRinsingThenFree) {
  DynamicTable table(4096);
  std::uint64_t added = 0;
  while (table.find_or_add(key(added), 8)) ++added;
  EXPECT_EQ(table.full_because(), DynamicTable::Full::Used);
  const std::uint64_t first = 0, second = 1, fresh = 1 << 20;

  table.erase(key(first));
  EXPECT_FALSE(table.find_or_add(key(fresh), 8));
  EXPECT_EQ(table.full_because(), DynamicTable::Full::Dirty);
  table.clean();
  EXPECT_FALSE(table.find_or_add(key(fresh), 8));
  EXPECT_EQ(table.full_because(), DynamicTable::Full::Rinsing);
  table.erase(key(second));
  table.clean();

  EXPECT_TRUE(table.find_or_add(key(fresh), 8)) << "the first one's memory";
  EXPECT_FALSE(table.find_or_add(key(first), 8)) << "the second one's is being rinsed";
  table.clean();
  EXPECT_TRUE(table.find_or_add(key(first), 8));
}

TEST(DynamicTable, SaysThatItRunsShortBeforeItIsFullWhereCleaningHelps) {
  DynamicTable table(4096);
  std::uint64_t added = 0;
  while (table.find_or_add(key(added), 8)) ++added;
  EXPECT_FALSE(table.runs_short()) << "nothing was erased";

  for (std::uint64_t each = 0; each < added; ++each) table.erase(key(each));
  EXPECT_FALSE(table.find_or_add(key(added), 8));
  EXPECT_TRUE(table.runs_short());
  EXPECT_FALSE(table.runs_short()) << "was told";
  table.clean();
  table.clean();

  // A program that makes an element and erases it, and is cleaned only when it runs short: it waits
  // once for all that is rinsing.
  constexpr std::uint64_t kRounds = 10;
  std::uint64_t dropped = 0;
  for (std::uint64_t each = 0; each < kRounds * added; ++each) {
    if (table.find_or_add(key(each), 8)) {
      table.erase(key(each));
    } else {
      ++dropped;
    }
    if (table.runs_short()) table.clean();
  }
  EXPECT_LE(dropped, kRounds);
}

TEST(DynamicTable, SaysSoWhenTheLastFreedChunkIsTaken) {
  DynamicTable table(4096);
  std::uint64_t added = 0;
  while (table.find_or_add(key(added), 8)) ++added;
  for (std::uint64_t each = 0; each < 3; ++each) table.erase(key(each));
  table.clean();
  table.clean();
  table.erase(key(3));  // so that cleaning helps
  EXPECT_FALSE(table.runs_short());

  EXPECT_TRUE(table.find_or_add(key(0), 8));
  EXPECT_TRUE(table.find_or_add(key(1), 8));
  EXPECT_FALSE(table.runs_short()) << "there is one more";
  EXPECT_TRUE(table.find_or_add(key(2), 8));
  EXPECT_TRUE(table.runs_short());
}

TEST(DynamicTable, CleaningKeepsEveryFreedChunk) {
  DynamicTable table(4096);
  std::uint64_t added = 0;
  while (table.find_or_add(key(added), 8)) ++added;
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t i = 0; i < added; ++i) table.erase(key(i));
    clean_all(table);
    for (std::uint64_t i = 0; i < added; ++i) EXPECT_TRUE(table.find_or_add(key(i), 8)) << i;
  }
}

TEST(DynamicTable, ItsSizeIsExactBelowAPage) {
  const std::uint64_t one = 1, two = 2;
  DynamicTable nothing(15), single(64);
  EXPECT_FALSE(nothing.find_or_add(key(one), 8));
  EXPECT_TRUE(single.find_or_add(key(one), 8));
  EXPECT_FALSE(single.find_or_add(key(two), 8));
  DynamicTable filled(64), small(63);
  EXPECT_TRUE(filled.find_or_add(key(one), 16)) << "48 bytes with its key and what lies before";
  EXPECT_FALSE(small.find_or_add(key(one), 16));
}

TEST(DynamicTable, RefusesAnElementLargerThanEverything) {
  DynamicTable table(4096);
  const std::uint64_t one = 1;
  EXPECT_FALSE(table.find_or_add(key(one), 1 << 20));
  DynamicTable spacious(std::size_t{1} << 30);
  EXPECT_FALSE(spacious.find_or_add(key(one), std::size_t{600} << 20)) << "of no size class";
}

}  // namespace
}  // namespace ringside::dif
