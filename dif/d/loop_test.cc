// Loops, break, continue, and what becomes of a fault among conditions.
#include <gtest/gtest.h>

#include "dif/d/testing/program_runner.h"

namespace ringside::d {
namespace {

using Values = std::vector<Recorded>;

Values numbers(std::initializer_list<std::int64_t> list) {
  return {list.begin(), list.end()};
}

Values values(std::string_view body) {
  const Outcome out = run("fbt:::entry { " + std::string(body) + " }");
  EXPECT_EQ(out.error, "") << body;
  EXPECT_TRUE(out.faults.empty()) << body;
  return out.values;
}

TEST(Loops, CountingLoopsNeedNoLimit) {
  EXPECT_EQ(values("for (this->i = 0; this->i < 3; this->i++) trace(this->i); trace(this->i);"),
            numbers({0, 1, 2, 3}));
  EXPECT_EQ(values("for (i = 10; i >= 4; i -= 3) { trace(i); }"), numbers({10, 7, 4}));
  EXPECT_EQ(values("for (i = 0; 2 > i; i = i + 1) { trace(i); }"), numbers({0, 1}));
  EXPECT_EQ(values("for (i = 5; i < 5; ++i) { trace(i); } trace(9);"), numbers({9}));
}

TEST(Loops, EndAtTheirLimitOrTheirCondition) {
  EXPECT_EQ(values("i = 0; while (i < 100; 3) { trace(i++); }"), numbers({0, 1, 2}));
  EXPECT_EQ(values("i = 0; while (i++ < 2; 50) trace(i); trace(i);"), numbers({1, 2, 3}));
  EXPECT_EQ(values("for (;;; 2) trace(7);"), numbers({7, 7}));
  EXPECT_EQ(values("for (i = 0; i < arg0; i++; 4) trace(i);"), numbers({0, 1, 2, 3}));
}

TEST(Loops, NestAndBreakAndContinue) {
  EXPECT_EQ(values("for (i = 0; i < 3; i++) for (j = 0; j < 2; j++) trace(i * 10 + j);"),
            numbers({0, 1, 10, 11, 20, 21}));
  EXPECT_EQ(
      values("for (i = 0; i < 9; i++) { if (i == 1) continue; if (i == 4) { trace(-1); break; "
             "trace(-2); } trace(i); } trace(i);"),
      numbers({0, 2, 3, -1, 4}));
  EXPECT_EQ(values("for (i = 0; i < 2; i++) { for (j = 0; j < 9; j++) { if (j > i) break; "
                   "trace(j); } trace(100 + i); }"),
            numbers({0, 100, 0, 1, 101}));
  EXPECT_EQ(values("if (arg0 == 1) for (i = 0; i < 2; i++) trace(i); else trace(5);"),
            numbers({5}));
}

TEST(Loops, FollowThePredicate) {
  const Outcome out =
      run("BEGIN /pid == 1/ { for (i = 0; i < 2; i++) trace(i); } "
          "BEGIN /pid == 4711/ { for (i = 5; i < 7; i++) trace(i); }");

  EXPECT_EQ(out.error, "");
  EXPECT_EQ(out.values, numbers({5, 6}));
}

TEST(Loops, AFaultEndsTheLoopAndTheClause) {
  const Outcome out =
      run("BEGIN { for (i = 0; i < 5; i++) { trace(i); trace(10 / (1 - i)); } trace(77); } "
          "BEGIN { trace(88); }");

  EXPECT_EQ(out.error, "");
  EXPECT_EQ(out.faults.size(), 1U);
  EXPECT_EQ(out.values, numbers({0, 10, 88}));
}

TEST(Conditions, AFaultEndsTheWholeClause) {
  const Outcome in_condition =
      run("BEGIN { if (*(int *)8 == 1) trace(1); else trace(2); trace(3); }");
  EXPECT_EQ(in_condition.faults.size(), 1U);
  EXPECT_TRUE(in_condition.values.empty());

  const Outcome in_branch = run("BEGIN { if (pid) { trace(*(int *)8); } trace(3); }");
  EXPECT_EQ(in_branch.faults.size(), 1U);
  EXPECT_TRUE(in_branch.values.empty());
}

TEST(Loops, WithoutABoundAreRefused) {
  const auto refused = [](std::string_view body) {
    const std::string error = error_of("BEGIN { " + std::string(body) + " }");
    EXPECT_TRUE(error.starts_with("[D_LOOP_LIMIT]")) << body << "\n" << error;
    return error;
  };
  EXPECT_NE(refused("while (pid > 0) trace(1);")
                .find("the number of trips of this loop cannot be bounded: write a limit, as in "
                      "while (condition; 100)"),
            std::string::npos);
  refused("for (i = 0; i < pid; i++) trace(1);");
  refused("for (i = 0; i < 10; i++) { i = 3; }");
  refused("for (i = 0; i < 10; i--) trace(1);");
  refused("for (i = 0; i != 5; i += 2) trace(1);");
  refused("for (i = 0; i < 2000000; i++) trace(1);");
  refused("for (i = 0; i < 2000; i++) for (j = 0; j < 2000; j++) trace(1);");
  refused("while (1; pid) trace(1);");
  refused("while (1; 0) trace(1);");
  EXPECT_TRUE(error_of("BEGIN { break; }").starts_with("[D_SYNTAX]"));
}

}  // namespace
}  // namespace ringside::d
