#include "dif/evaluate/lazy_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>

namespace ringside::dif {
namespace {

/// From now on this process can map so many bytes more.
void let_map(std::uint64_t more) {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const std::uint64_t most = pages * 4096 + more;
  const rlimit limit{most, most};
  if (pages == 0 || setrlimit(RLIMIT_AS, &limit) != 0) std::abort();
}

TEST(LazyMemory, IsZeroAndAsLargeAsWanted) {
  const LazyMemory memory(1 << 20);
  ASSERT_EQ(memory.bytes().size(), std::size_t{1} << 20);
  EXPECT_EQ(memory.bytes().front(), std::byte{0});
  EXPECT_EQ(memory.bytes().back(), std::byte{0});
}

TEST(LazyMemoryDeathTest, IsHalvedUntilTheHostHasAsMuch) {
  constexpr std::size_t kWanted = std::size_t{1} << 30;
  EXPECT_EXIT(
      {
        let_map(kWanted / 4 + kWanted / 8);
        const LazyMemory memory(kWanted);
        std::_Exit(memory.bytes().size() == kWanted / 4 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(LazyMemoryDeathTest, IsPossibleWhereTheHostHasAsMuch) {
  constexpr std::size_t kWanted = std::size_t{1} << 30;
  EXPECT_EXIT(
      {
        let_map(kWanted / 2);
        const bool as_wanted = !LazyMemory::is_possible(kWanted) && LazyMemory::is_possible(0) &&
                               LazyMemory::is_possible(kWanted / 4);
        std::_Exit(as_wanted ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace ringside::dif
