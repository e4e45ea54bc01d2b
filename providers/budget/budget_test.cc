#include "providers/budget/budget.h"

#include <gtest/gtest.h>

namespace ringside::providers {
namespace {

using Verdict = BudgetKeeper::Verdict;

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(BudgetKeeper, WantsTwoLooksRunningThatAreOverTheRate) {
  BudgetKeeper keeper({.max_rate = 1000});

  EXPECT_EQ(keeper.look(1 * kSecond, {{0, 0}, {0, 0}}), Verdict::Fine);
  EXPECT_EQ(keeper.look(2 * kSecond, {{500, 0}, {500, 0}}), Verdict::Fine) << "just the rate";
  EXPECT_EQ(keeper.look(3 * kSecond, {{1001, 0}, {1001, 0}}), Verdict::Suspicious);
  EXPECT_EQ(keeper.look(4 * kSecond, {{1001, 0}, {1001, 0}}), Verdict::Fine) << "it was a burst";
  EXPECT_EQ(keeper.look(5 * kSecond, {{3001, 0}, {1001, 0}}), Verdict::Suspicious);
  EXPECT_EQ(keeper.look(6 * kSecond, {{5001, 0}, {1001, 0}}), Verdict::TooMuch);
  EXPECT_TRUE(keeper.overrun().by_rate);
  EXPECT_DOUBLE_EQ(keeper.overrun().rate, 2000);
  EXPECT_NEAR(keeper.overrun().kept, 0.25, 0.01);
  keeper.forget();
  EXPECT_EQ(keeper.look(7 * kSecond, {{9001, 0}, {1001, 0}}), Verdict::Fine);
  EXPECT_EQ(keeper.look(8 * kSecond, {{19001, 0}, {1001, 0}}), Verdict::Suspicious);
}

TEST(BudgetKeeper, CountsTheShareOfTheVcpuThatTrapsMost) {
  BudgetKeeper keeper({.max_slow = 50});

  keeper.look(1 * kSecond, {{0, 0}, {0, 0}});
  EXPECT_EQ(keeper.look(2 * kSecond, {{100, kSecond / 3}, {100, kSecond / 3}}), Verdict::Fine);
  keeper.look(3 * kSecond, {{200, kSecond}, {200, kSecond / 3}});
  EXPECT_EQ(keeper.look(4 * kSecond, {{300, 3 * kSecond / 2 + kSecond / 10}, {200, kSecond / 3}}),
            Verdict::TooMuch);
  EXPECT_FALSE(keeper.overrun().by_rate);
  EXPECT_NEAR(keeper.overrun().slow, 0.6, 0.01);
  EXPECT_NEAR(keeper.overrun().kept, (0.25 / 0.75) / (0.6 / 0.4), 0.01);
}

TEST(BudgetKeeper, CountsWhatATrapTakesBesideItsWait) {
  BudgetKeeper keeper({.max_slow = 50});

  keeper.look(1 * kSecond, {{0, 0}});
  keeper.look(2 * kSecond, {{1'200'000, 0}});

  EXPECT_EQ(keeper.look(3 * kSecond, {{2'400'000, 0}}), Verdict::TooMuch);
}

TEST(BudgetKeeper, HundredPercentIsNoLimit) {
  BudgetKeeper keeper({.max_slow = 100});

  for (std::uint64_t n = 0; n < 4; ++n) {
    EXPECT_EQ(keeper.look(n * kSecond, {{n, 2 * n * kSecond}}), Verdict::Fine);
  }
}

TEST(Hottest, AreAsManyAsMustGo) {
  const std::vector<DispatchTable::Hits> places{
      {GuestVirt(1), 5, {}}, {GuestVirt(2), 80, {}}, {GuestVirt(3), 10, {}}, {GuestVirt(4), 5, {}}};

  EXPECT_EQ(hottest(places, 0.3, 0).size(), 1u);
  EXPECT_EQ(hottest(places, 0.3, 0).front().at, GuestVirt(2));
  EXPECT_EQ(hottest(places, 0.1, 0).size(), 2u);
  EXPECT_EQ(hottest(places, 0.3, 3).size(), 3u);
  EXPECT_EQ(hottest(places, 0, 0).size(), 4u);
  EXPECT_TRUE(hottest({}, 0.5, 7).empty());
}

}  // namespace
}  // namespace ringside::providers
