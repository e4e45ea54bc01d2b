#include "providers/budget/budget_enforcer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "providers/clock/host_clock.h"

namespace ringside::providers {
namespace {

constexpr dif::ProbeId kHot{7}, kCold{8};

/// A guest with one vCPU, which traps as fast as time goes on, most of all at one place.
struct FakeTraps {
  BudgetEnforcerParts parts() {
    BudgetEnforcerParts parts;
    parts.loads = [this] {
      const std::uint64_t now = monotonic_ns() - began;
      return std::vector<CpuTraps>{{storm ? now / 1000 : 0, storm ? now * 2 : 0}};
    };
    parts.counts = [this] {
      const std::uint64_t now = (monotonic_ns() - began) / 1000;
      return DispatchTable::Counts{1, {1'000'000'000'000, now}};
    };
    parts.hits_since = [counts = parts.counts](const DispatchTable::Counts& before) {
      const auto now = counts().hits;
      std::vector<DispatchTable::Hits> places;
      if (now[0] != before.hits[0]) {
        places.push_back({GuestVirt(1), now[0] - before.hits[0], {kCold}});
      }
      if (now[1] != before.hits[1]) {
        places.push_back({GuestVirt(2), now[1] - before.hits[1], {kHot}});
      }
      return places;
    };
    parts.take_out = [this](std::span<const dif::ProbeId> probes) {
      if (storm.exchange(false)) taken.set_value({probes.begin(), probes.end()});
      return Result<void>();
    };
    return parts;
  }

  const std::uint64_t began = monotonic_ns() - 1'000'000'000;
  std::atomic<bool> storm = true;
  std::promise<std::vector<dif::ProbeId>> taken;
};

TEST(BudgetEnforcer, TakesOutWhatFiredMostWhileItWasTooMuch) {
  FakeTraps traps;
  BudgetEnforcer enforcer({.max_slow = 90}, traps.parts(), std::chrono::milliseconds(10));

  EXPECT_EQ(traps.taken.get_future().get(), std::vector{kHot}) << "not what fired before that";
  enforcer.end();

  const auto taken = enforcer.take_taken_out();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].probes, std::vector{kHot});
  EXPECT_TRUE(taken[0].done);
  EXPECT_EQ(enforcer.count(), 1u);
  EXPECT_TRUE(enforcer.take_taken_out().empty()) << "each is told once";
}

TEST(BudgetEnforcer, LeavesAloneWhatIsWithinTheBudget) {
  FakeTraps traps;
  traps.storm = false;
  BudgetEnforcer enforcer({.max_rate = 10}, traps.parts(), std::chrono::milliseconds(1));

  enforcer.end();

  EXPECT_EQ(enforcer.count(), 0u);
}

}  // namespace
}  // namespace ringside::providers
