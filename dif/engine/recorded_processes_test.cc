#include "dif/engine/recorded_processes.h"

#include <gtest/gtest.h>

#include <vector>

namespace ringside::dif {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

std::vector<std::uint64_t> all(RecordedProcesses& processes) {
  std::vector<std::uint64_t> pids;
  while (const auto pid = processes.next()) pids.push_back(*pid);
  return pids;
}

TEST(RecordedProcesses, IsToldAtOnceAndThenAfterPausesThatDouble) {
  RecordedProcesses processes;
  std::vector<std::uint64_t> told;
  for (std::uint64_t ms = 0; ms < 60; ++ms) {
    processes.note(7, 0x1000, ms * kMs);
    if (!all(processes).empty()) told.push_back(ms);
  }

  EXPECT_EQ(told, (std::vector<std::uint64_t>{0, 8, 24, 56}));
}

TEST(RecordedProcesses, AnotherProgramOfTheSameProcessIsToldAtOnce) {
  RecordedProcesses processes;
  processes.note(7, 0x1000, 0);
  processes.note(7, 0x2000, 1);
  processes.note(8, 0x2000, 2);

  EXPECT_EQ(all(processes), (std::vector<std::uint64_t>{7, 7, 8}));
}

TEST(RecordedProcesses, MoreThanThereIsRoomForAreLeftOut) {
  RecordedProcesses processes;
  for (std::uint64_t pid = 0; pid < 1000; ++pid) processes.note(pid, pid << 20, 0);

  EXPECT_EQ(all(processes).size(), 64u);
  processes.note(5000, 0x1000, 0);
  EXPECT_EQ(all(processes), std::vector<std::uint64_t>{5000});
}

}  // namespace
}  // namespace ringside::dif
