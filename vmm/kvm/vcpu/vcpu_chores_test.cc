#include "vmm/kvm/vcpu/vcpu_chores.h"

#include <gtest/gtest.h>

#include <thread>

namespace ringside::vmm::kvm {
namespace {

TEST(VcpuChores, NothingWaitsAtFirstNorAfterItWasTaken) {
  VcpuChores chores;
  EXPECT_FALSE(chores.any());

  chores.ask_sample(7);
  EXPECT_TRUE(chores.any());
  EXPECT_EQ(chores.take().sample, 7u);

  EXPECT_FALSE(chores.any());
  EXPECT_FALSE(chores.take().sample);
}

TEST(VcpuChores, ANewerSampleReplacesOneThatWaits) {
  VcpuChores chores;

  chores.ask_sample(1);
  chores.ask_sample(2);

  EXPECT_EQ(chores.take().sample, 2u);
}

TEST(VcpuChores, LinesAreTakenInTheirOrder) {
  VcpuChores chores;

  EXPECT_TRUE(chores.note_line(4, true));
  EXPECT_TRUE(chores.note_line(9, true));
  EXPECT_TRUE(chores.note_line(4, false));

  EXPECT_EQ(chores.take().lines, (std::vector<VcpuChores::Line>{{4, true}, {9, true}, {4, false}}));
  EXPECT_TRUE(chores.take().lines.empty());
}

TEST(VcpuChores, LinesBeyondTheLimitAreDroppedAndCounted) {
  VcpuChores chores;
  for (std::size_t i = 0; i < VcpuChores::kMostLines; ++i) ASSERT_TRUE(chores.note_line(1, true));

  EXPECT_FALSE(chores.note_line(2, true));
  EXPECT_FALSE(chores.note_line(2, false));

  EXPECT_EQ(chores.lost(), 2u);
  EXPECT_EQ(chores.take().lines.size(), VcpuChores::kMostLines);
  EXPECT_TRUE(chores.note_line(2, true));
}

TEST(VcpuChores, NoLineIsLostBetweenTwoThreads) {
  constexpr unsigned kLines = 500;  // fewer than may wait
  VcpuChores chores;
  std::thread other([&] {
    for (unsigned i = 0; i < kLines; ++i) chores.note_line(i, true);
  });

  std::vector<VcpuChores::Line> seen;
  while (seen.size() < kLines) {
    if (!chores.any()) continue;
    const auto taken = chores.take();
    seen.insert(seen.end(), taken.lines.begin(), taken.lines.end());
  }
  other.join();

  for (unsigned i = 0; i < kLines; ++i) EXPECT_EQ(seen[i].gsi, i);
}

}  // namespace
}  // namespace ringside::vmm::kvm
