#include "providers/dispatch/trap_tally.h"

#include <gtest/gtest.h>

namespace ringside::providers {
namespace {

TEST(TrapTally, CountsByCpuAndByPowersOfTwo) {
  TrapTally tally(2);

  for (const std::uint64_t wait : {0, 1, 2, 3, 1023, 1024}) tally.add(0, wait);
  tally.add(1, UINT64_MAX >> 1);

  const auto cpus = tally.by_cpu();
  ASSERT_EQ(cpus.size(), 2u);
  EXPECT_EQ(cpus[0].traps, 6u);
  EXPECT_EQ(cpus[0].waited, 0u + 1 + 2 + 3 + 1023 + 1024);
  EXPECT_EQ(cpus[1].traps, 1u);
  const WaitHistogram sum = tally.histogram();
  EXPECT_EQ(sum.total(), 7u);
  EXPECT_EQ(sum.waits[0], 2u);
  EXPECT_EQ(sum.waits[1], 2u);
  EXPECT_EQ(sum.waits[9], 1u);
  EXPECT_EQ(sum.waits[10], 1u);
  EXPECT_EQ(sum.waits[62], 1u);
}

TEST(TrapTally, HistogramsOfSeveralMachinesAreAdded) {
  TrapTally one(1), other(1);
  one.add(0, 1);
  one.add(0, UINT64_MAX);
  other.add(0, 1);
  other.add(0, 4);

  WaitHistogram sum = one.histogram();
  sum += other.histogram();

  EXPECT_EQ(sum.waits[0], 2u);
  EXPECT_EQ(sum.waits[2], 1u);
  EXPECT_EQ(sum.waits[63], 1u);
  EXPECT_EQ(sum.total(), 4u);
}

}  // namespace
}  // namespace ringside::providers
