// Expressions that need more registers than there are: hidden variables take their place, and
// nothing else changes.
#include "dif/d/code/spill.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "dif/d/testing/program_runner.h"

namespace ringside::d {
namespace {

CompileOptions with_registers(unsigned count) {
  CompileOptions options;
  options.integer_registers = count;
  return options;
}

/// first(first(...(inner)...)), `depth` times.
std::string nested(std::string_view before, std::string_view inner, std::string_view after,
                   int depth) {
  std::string text(inner);
  for (int i = 0; i < depth; ++i) text = std::string(before) + text + std::string(after);
  return text;
}

TEST(Spill, NestedOperandsOfAnyDepthCompile) {
  for (const int depth : {6, 7, 8, 12, 50, 200}) {
    const Outcome sum = run("BEGIN { x = 1; trace(" + nested("x + (", "x", ")", depth) + "); }");
    const Outcome text =
        run("BEGIN { trace(strlen(" + nested("strjoin(\"a\", ", "\"b\"", ")", depth) + ")); }");
    const Outcome difference =
        run("BEGIN { x = 1; trace(" + nested("x - (", "x", ")", depth) + "); }");

    ASSERT_EQ(sum.error + text.error + difference.error, "") << depth;
    EXPECT_EQ(sum.values, std::vector<Recorded>{std::int64_t{depth + 1}});
    EXPECT_EQ(text.values, std::vector<Recorded>{std::int64_t{depth + 1}});
    EXPECT_EQ(difference.values, std::vector<Recorded>{std::int64_t{1 - depth % 2}});
  }
}

TEST(Spill, CodeGrowsWithTheDepthAndNotFaster) {
  const auto size = [](int depth) {
    const Outcome out = run("int x; BEGIN { trace(" + nested("x + (", "x", ")", depth) + "); }");
    EXPECT_EQ(out.error, "");
    return out.program.clauses.at(0).actions.at(0).arguments.at(0).text.size();
  };

  EXPECT_EQ(size(200) - size(150), size(150) - size(100));
}

TEST(Spill, NothingIsSpilledThatFits) {
  const Outcome out = run("int x; BEGIN { trace(" + nested("x + (", "x", ")", 6) + "); }");

  ASSERT_EQ(out.error, "");
  const auto& variables = out.program.clauses[0].actions[0].arguments[0].variables;
  EXPECT_EQ(variables.size(), 1U) << "x alone";
}

/// Compares the records of a program with all registers and with few.
class Spilled : public testing::TestWithParam<const char*> {};

TEST_P(Spilled, MeansTheSameWithFewRegisters) {
  const Outcome expected = run(GetParam(), with_registers(dif::kRegisters));
  ASSERT_EQ(expected.error, "");
  ASSERT_FALSE(expected.values.empty());

  for (unsigned count = kLeastToSpill; count < dif::kRegisters; ++count) {
    const Outcome out = run(GetParam(), with_registers(count));
    ASSERT_EQ(out.error, "") << count;
    EXPECT_EQ(out.values, expected.values) << count;
    EXPECT_EQ(out.faults.size(), expected.faults.size()) << count;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Programs, Spilled,
    testing::Values(
        "BEGIN { x = 7; y = 3; trace((x * y - x / y) << (x % y) ^ ~(x | -y) & (x >> 1)); }",
        "BEGIN { x = 7; trace(x > 3 ? x < 5 ? 1 : x == 7 ? x + 2 : 3 : 4); trace(!x || x ^^ 1); }",
        "BEGIN { a[1, \"x\"] = 7; trace(a[1, \"x\"] + a[a[1, \"x\"] - 6, \"x\"]++ * 2); "
        "trace(a[1, \"x\"]); }",
        "struct s { int a : 3; int b : 7; long c; char t[8]; }; struct s v; "
        "BEGIN { v.a = 2; v.b = -5; v.c = v.a * v.b; v.t[v.a] = 'x'; v.b += 9; v.a++; "
        "trace(v.a); trace(v.b); trace(v.c); trace(v.t[2]); }",
        "BEGIN { this->p = (char *)alloca(16); bcopy(\"hello\", this->p, 6); "
        "this->p[0] = this->p[1] + 1; *(this->p + 4) -= 2; trace(stringof(this->p)); }",
        "BEGIN { trace(strjoin(substr(\"abcdef\", 1 + 1, strlen(\"xyz\")), "
        "execname == \"workload\" ? \"!\" : \"?\")); }",
        "self int n; BEGIN { self->n = 5; trace(++self->n + self->n-- * self->n); }",
        "fbt::vfs_read:entry { trace(curthread->pid + arg2 * (arg0 + curthread->pid)); }",
        "string t[int]; BEGIN { t[1] = \"one\"; t[2] = strjoin(t[1], t[1]); trace(t[2]); "
        "trace(t[1] < t[2] && t[2] != \"one\"); }"));

TEST(Spill, NeedsFourRegisters) {
  const std::string program = "int x; BEGIN { trace(" + nested("x + (", "x", ")", 5) + "); }";

  for (const unsigned count : {1U, 2U, 3U}) {
    EXPECT_TRUE(error_of(program, with_registers(count)).starts_with("[D_NOREG] line 1: "));
  }
  EXPECT_EQ(error_of(program, with_registers(kLeastToSpill)), "");
}

TEST(Spill, HiddenVariablesAreSharedByAllObjects) {
  const std::string deep = nested("x + (", "x", ")", 30);
  const Outcome out = run("int x; BEGIN { trace(" + deep + "); trace(" + deep + " + 1); }");

  ASSERT_EQ(out.error, "");
  const auto& actions = out.program.clauses[0].actions;
  const auto ids = [](const dif::Difo& difo) {
    std::vector<std::uint16_t> result;
    for (const dif::Variable& variable : difo.variables) {
      if (variable.name.starts_with("%spill_")) result.push_back(variable.id);
    }
    return result;
  };
  EXPECT_GT(ids(actions[0].arguments[0]).size(), 20U);
  EXPECT_TRUE(std::ranges::equal(ids(actions[0].arguments[0]), ids(actions[1].arguments[0])));
}

}  // namespace
}  // namespace ringside::d
