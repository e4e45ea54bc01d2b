#include "dif/evaluate/line_cache.h"

#include <gtest/gtest.h>

#include "dif/testing/fake_guest.h"

namespace ringside::dif {
namespace {

using testing::FakeMemory;

constexpr std::uint64_t kAt = 0xffff'8880'0000'1000;

std::uint64_t read64(LineCache& cache, std::uint64_t at) {
  std::uint64_t value = 0;
  EXPECT_TRUE(cache.read(at, std::as_writable_bytes(std::span(&value, 1))));
  return value;
}

FakeMemory mapped_line() {
  FakeMemory memory;
  memory.put(kAt, std::vector<std::byte>(128));
  return memory;
}

TEST(LineCache, AFiringSeesTheFirstStateOfALine) {
  FakeMemory memory = mapped_line();
  LineCache cache;
  cache.begin(memory);
  memory.put_value(kAt, std::uint64_t{1});
  EXPECT_EQ(read64(cache, kAt), 1u);

  memory.put_value(kAt, std::uint64_t{2});

  EXPECT_EQ(read64(cache, kAt), 1u) << "a snapshot";
  EXPECT_EQ(read64(cache, kAt + 8), 0u);
  EXPECT_EQ(memory.reads, 1u);
  cache.begin(memory);
  EXPECT_EQ(read64(cache, kAt), 2u) << "the next firing looks again";
}

TEST(LineCache, TheFirstFiringReadsTheLowestAddressesFromTheGuest) {
  const FakeMemory memory;
  LineCache cache;
  cache.begin(memory);
  std::array<std::byte, 8> out;

  EXPECT_FALSE(cache.read(8, out)) << "nothing is mapped there";
}

TEST(LineCache, ReadsAcrossLines) {
  FakeMemory memory = mapped_line();
  memory.put_value(kAt + 60, std::uint64_t{0x1122'3344'5566'7788});
  LineCache cache;
  cache.begin(memory);

  EXPECT_EQ(read64(cache, kAt + 60), 0x1122'3344'5566'7788u);
  EXPECT_EQ(memory.reads, 2u);
}

TEST(LineCache, ReadsWhatIsThereOfAHalfMappedLine) {
  FakeMemory memory;
  memory.put_value(kAt + 8, std::uint64_t{5});
  LineCache cache;
  cache.begin(memory);

  EXPECT_EQ(read64(cache, kAt + 8), 5u);
  std::uint64_t value;
  const auto read = cache.read(kAt + 12, std::as_writable_bytes(std::span(&value, 1)));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().address, kAt + 16);
}

TEST(LineCache, RefusesARangeThatWraps) {
  FakeMemory memory;
  LineCache cache;
  cache.begin(memory);
  std::uint64_t value;

  const auto read = cache.read(UINT64_MAX - 3, std::as_writable_bytes(std::span(&value, 1)));

  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, FaultKind::BadAddress);
  EXPECT_EQ(memory.reads, 0u);
  memory.put(UINT64_MAX - 8, std::vector<std::byte>(8, std::byte{1}));
  EXPECT_EQ(read64(cache, UINT64_MAX - 8), 0x0101'0101'0101'0101u) << "up to the last one but one";
}

TEST(LineCache, TheLastByteOfALineIsInIt) {
  FakeMemory memory = mapped_line();
  memory.put_value(kAt + 56, std::uint64_t{7});
  LineCache cache;
  cache.begin(memory);
  EXPECT_EQ(read64(cache, kAt + 56), 7u);
  EXPECT_EQ(read64(cache, kAt), 0u);
  EXPECT_EQ(memory.reads, 1u);

  const auto rest = cache.line_from(kAt + 60);

  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->size(), 4u);
  EXPECT_EQ(cache.line_from(kAt + 64)->size(), 64u);
}

TEST(LineCache, CollidingLinesStayCorrect) {
  FakeMemory memory = mapped_line();
  const std::uint64_t other = kAt + LineCache::kLine * LineCache::kLines;
  memory.put(other, std::vector<std::byte>(64));
  memory.put_value(kAt, std::uint64_t{1});
  memory.put_value(other, std::uint64_t{2});
  LineCache cache;
  cache.begin(memory);

  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(read64(cache, kAt), 1u);
    EXPECT_EQ(read64(cache, other), 2u);
  }
}

}  // namespace
}  // namespace ringside::dif
