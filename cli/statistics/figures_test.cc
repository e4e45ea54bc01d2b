#include "cli/statistics/figures.h"

#include <gtest/gtest.h>

namespace ringside::cli {
namespace {

Figures some() {
  Figures figures{.machine = "web1", .drops = 5};
  figures.trace.firings = 12;
  figures.trace.disarmed = 1;
  figures.trace.left_out = 4;
  figures.trace.skipped_ticks = 9;
  figures.trace.kernel = {.armed = 7, .misses = 2, .unfired = 1, .retired = 3};
  figures.trace.kernel.waits.waits[0] = 1;
  figures.trace.kernel.waits.waits[10] = 9;
  figures.trace.pauses = {.count = 3,
                          .total = std::chrono::microseconds(2500),
                          .longest = std::chrono::microseconds(1200)};
  return figures;
}

TEST(Figures, AreLines) {
  EXPECT_EQ(figures_lines(some()),
            (std::vector<std::string>{
                "12 firings by 10 traps, 1 of no probe; 2 missed, 5 drops, 9 ticks left out",
                "7 places armed; 3 retired since the guest changed its code, 1 probe disarmed over "
                "budget",
                "the guest stood still 3 times, for 2.5 ms in all, for 1.2 ms at the longest; "
                "4 samples left out"}));
}

TEST(Figures, SayWhatIsNotRecordedAndWhy) {
  Figures figures = some();
  figures.trace.kernel.recording = 5;
  figures.trace.kernel.recorded = 20;
  figures.trace.kernel.why_waiting = {{"line 2: stack() follows a stack", 2}, {"b", 1}};
  const auto lines = figures_lines(figures);

  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0].substr(0, 40), "12 firings by 30 traps, 20 recorded, 1 o");
  EXPECT_EQ(lines[1].substr(0, 28), "7 places armed; 5 recording,");
  EXPECT_EQ(lines[2], "1 place not recorded: b");
  EXPECT_EQ(lines[3], "2 places not recorded: line 2: stack() follows a stack");
}

TEST(Figures, OfNoMachineSayNothingOfAGuest) {
  EXPECT_EQ(figures_lines({.trace = {.firings = 1}}).size(), 2u);
  EXPECT_EQ(waits_drawing({}), "");
}

TEST(Figures, DrawWaitsAsQuantizeDoes) {
  const std::string drawing = waits_drawing(some().trace.kernel.waits);

  for (const char* row :
       {"            1024 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@     9        \n",
        "               1 |@@@@                                     1        \n",
        "             512 |                                         0        \n"}) {
    EXPECT_NE(drawing.find(row), std::string::npos) << drawing;
  }
}

TEST(Figures, ComeBackOutOfTheirTree) {
  const Figures figures = some();

  const auto again = figures_of(figures_tree(figures));

  ASSERT_TRUE(again);
  EXPECT_EQ(figures_tree(*again), figures_tree(figures));
  EXPECT_EQ(again->trace.kernel.waits.waits, figures.trace.kernel.waits.waits);
  EXPECT_EQ(again->trace.pauses.longest, figures.trace.pauses.longest);
}

TEST(Figures, AreNotReadOutOfAnythingElse) {
  Tree negative = figures_tree(some()), bucketless = figures_tree(some());
  negative["firings"] = -1;
  bucketless["waits"].push_back(3);

  for (const Tree& tree : {Tree(), Tree::array(), Tree{{"firings", 1}}, negative, bucketless}) {
    EXPECT_FALSE(figures_of(tree)) << tree;
  }
}

}  // namespace
}  // namespace ringside::cli
