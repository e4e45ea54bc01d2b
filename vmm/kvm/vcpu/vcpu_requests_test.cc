#include <gtest/gtest.h>

#include <thread>

#include "vmm/kvm/vcpu/pending_events.h"

namespace ringside::vmm::kvm {
namespace {

TEST(VcpuRequests, NothingWaitsAtFirstNorAfterItWasTaken) {
  VcpuRequests requests;
  EXPECT_FALSE(requests.any());

  requests.ask_sample(7);
  EXPECT_TRUE(requests.any());
  EXPECT_EQ(requests.take().sample, 7u);

  EXPECT_FALSE(requests.any());
  EXPECT_FALSE(requests.take().sample);
}

TEST(VcpuRequests, ANewerSampleReplacesOneThatWaits) {
  VcpuRequests requests;

  requests.ask_sample(1);
  requests.ask_sample(2);

  EXPECT_EQ(requests.take().sample, 2u);
}

TEST(VcpuRequests, LinesAreTakenInTheirOrder) {
  VcpuRequests requests;

  EXPECT_TRUE(requests.note_line(4, true));
  EXPECT_TRUE(requests.note_line(9, true));
  EXPECT_TRUE(requests.note_line(4, false));

  EXPECT_EQ(requests.take().lines,
            (std::vector<VcpuRequests::Line>{{4, true}, {9, true}, {4, false}}));
  EXPECT_TRUE(requests.take().lines.empty());
}

TEST(VcpuRequests, LinesBeyondTheLimitAreDroppedAndCounted) {
  VcpuRequests requests;
  for (std::size_t i = 0; i < VcpuRequests::kMostLines; ++i)
    ASSERT_TRUE(requests.note_line(1, true));

  EXPECT_FALSE(requests.note_line(2, true));
  EXPECT_FALSE(requests.note_line(2, false));

  EXPECT_EQ(requests.lost(), 2u);
  EXPECT_EQ(requests.take().lines.size(), VcpuRequests::kMostLines);
  EXPECT_TRUE(requests.note_line(2, true));
}

TEST(VcpuRequests, NoLineIsLostBetweenTwoThreads) {
  constexpr unsigned kLines = 500;  // fewer than may wait
  VcpuRequests requests;
  std::thread other([&] {
    for (unsigned i = 0; i < kLines; ++i) requests.note_line(i, true);
  });

  std::vector<VcpuRequests::Line> seen;
  while (seen.size() < kLines) {
    if (!requests.any()) continue;
    const auto taken = requests.take();
    seen.insert(seen.end(), taken.lines.begin(), taken.lines.end());
  }
  other.join();

  for (unsigned i = 0; i < kLines; ++i) EXPECT_EQ(seen[i].gsi, i);
}

}  // namespace
}  // namespace ringside::vmm::kvm
