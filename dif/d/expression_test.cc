// Random well-typed integer expressions, compiled and fired, against a reference evaluator that
// knows C's conversions by itself. The seed is fixed: a failure prints the expression.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "dif/d/testing/program_runner.h"

namespace ringside::d {
namespace {

__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 UnsignedWide;

/// An integer as C sees it; signed overflow wraps, as D has it.
struct Integer {
  Wide value = 0;
  int size = 4;
  bool is_signed = true;
};

Integer as(Wide value, int size, bool is_signed) {
  const Wide range = static_cast<Wide>(1) << (size * 8);
  value = ((value % range) + range) % range;
  if (is_signed && value >= range / 2) value -= range;
  return {value, size, is_signed};
}

Integer promoted(const Integer& x) {
  return x.size < 4 ? Integer{x.value, 4, true} : x;
}

struct Kind {
  const char* name;
  int size;
  bool is_signed;
};
constexpr std::array kKinds = {Kind{"signed char", 1, true}, Kind{"unsigned char", 1, false},
                               Kind{"short", 2, true},       Kind{"unsigned short", 2, false},
                               Kind{"int", 4, true},         Kind{"unsigned int", 4, false},
                               Kind{"long", 8, true},        Kind{"unsigned long", 8, false}};

struct Generated {
  std::string text;
  Integer value;
};

class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {
    for (std::size_t i = 0; i < kKinds.size(); ++i) {
      variables_[i] = as(interesting(), kKinds[i].size, kKinds[i].is_signed);
    }
  }

  /// Declares and sets v0..v7.
  std::string prologue() const {
    std::string declarations, sets;
    for (std::size_t i = 0; i < kKinds.size(); ++i) {
      declarations += fmt::format("{} v{};\n", kKinds[i].name, i);
      sets += fmt::format("v{} = {:#x};", i, static_cast<std::uint64_t>(variables_[i].value));
    }
    return declarations + "BEGIN { " + sets + " }\n";
  }

  Generated expression(int depth) {
    if (depth == 0) return leaf();
    switch (pick(8)) {
      case 0: return unary(depth);
      case 1: return cast(depth);
      case 2: return conditional(depth);
      case 3: return shift(depth);
      default: return binary(depth);
    }
  }

 private:
  std::uint64_t pick(std::uint64_t n) { return random_() % n; }

  Wide interesting() {
    constexpr std::int64_t kValues[] = {
        0,     1,     -1,    2,         7,         127,        128,       255,      256,
        32767, 65535, 65536, INT32_MAX, INT32_MIN, UINT32_MAX, INT64_MAX, INT64_MIN};
    if (pick(3) != 0) return kValues[pick(std::size(kValues))];
    return static_cast<std::int64_t>(random_()) >> pick(60);
  }

  Generated leaf() {
    const std::size_t i = pick(kKinds.size());
    if (pick(4) != 0) return {fmt::format("v{}", i), variables_[i]};
    const Integer value = as(interesting(), kKinds[i].size, kKinds[i].is_signed);
    return {fmt::format("({}){:#x}", kKinds[i].name, static_cast<std::uint64_t>(value.value)),
            value};
  }

  Generated unary(int depth) {
    const Generated a = expression(depth - 1);
    const Integer x = promoted(a.value);
    switch (pick(4)) {
      case 0: return {"(-" + a.text + ")", as(-x.value, x.size, x.is_signed)};
      case 1: return {"(~" + a.text + ")", as(~x.value, x.size, x.is_signed)};
      case 2: return {"(+" + a.text + ")", x};
      default: return {"(!" + a.text + ")", {a.value.value == 0, 4, true}};
    }
  }

  Generated cast(int depth) {
    const Generated a = expression(depth - 1);
    const Kind& kind = kKinds[pick(kKinds.size())];
    return {fmt::format("(({}){})", kind.name, a.text),
            as(a.value.value, kind.size, kind.is_signed)};
  }

  static std::pair<Integer, Integer> common(const Integer& a, const Integer& b) {
    const Integer x = promoted(a), y = promoted(b);
    const int size = std::max(x.size, y.size);
    const bool is_unsigned = (x.size == size && !x.is_signed) || (y.size == size && !y.is_signed);
    return {as(x.value, size, !is_unsigned), as(y.value, size, !is_unsigned)};
  }

  Generated conditional(int depth) {
    const Generated a = expression(depth - 1), b = expression(depth - 1), c = expression(depth - 1);
    const auto [x, y] = common(b.value, c.value);
    return {fmt::format("({} ? {} : {})", a.text, b.text, c.text), a.value.value != 0 ? x : y};
  }

  Generated shift(int depth) {
    const Generated a = expression(depth - 1), b = expression(depth - 1);
    const Integer x = promoted(a.value);
    const auto count = static_cast<int>(static_cast<std::uint64_t>(b.value.value) & 31);
    if (pick(2) == 0) {
      return {fmt::format("({} << ({} & 31))", a.text, b.text),
              as(x.value * (static_cast<Wide>(1) << count), x.size, x.is_signed)};
    }
    return {fmt::format("({} >> ({} & 31))", a.text, b.text),
            as(x.value >> count, x.size, x.is_signed)};
  }

  Generated binary(int depth) {
    constexpr std::array kOps = {"+",  "-", "*",  "/",  "%",  "&",  "|",  "^", "<",
                                 "<=", ">", ">=", "==", "!=", "&&", "||", "^^"};
    const Generated a = expression(depth - 1);
    Generated b = expression(depth - 1);
    const std::string op = kOps[pick(kOps.size())];
    if (op == "/" || op == "%") {  // an odd divisor is not 0
      const Integer y = promoted(b.value);
      b = {"(" + b.text + " | 1)", as(y.value | 1, y.size, y.is_signed)};
    }
    const std::string text = "(" + a.text + " " + op + " " + b.text + ")";
    // Not a structured binding: C++20 allows a lambda to capture one, clang 14 does not.
    const std::pair<Integer, Integer> operands = common(a.value, b.value);
    const Integer x = operands.first, y = operands.second;
    const auto arithmetic = [&](Wide value) {
      return Generated{text, as(value, x.size, x.is_signed)};
    };
    const auto truth = [&](bool value) { return Generated{text, {value, 4, true}}; };
    if (op == "+") return arithmetic(x.value + y.value);
    if (op == "-") return arithmetic(x.value - y.value);
    if (op == "*") {
      return arithmetic(static_cast<Wide>(static_cast<UnsignedWide>(x.value) *
                                          static_cast<UnsignedWide>(y.value)));
    }
    if (op == "/") return arithmetic(x.value / y.value);
    if (op == "%") return arithmetic(x.value % y.value);
    if (op == "&") return arithmetic(x.value & y.value);
    if (op == "|") return arithmetic(x.value | y.value);
    if (op == "^") return arithmetic(x.value ^ y.value);
    if (op == "<") return truth(x.value < y.value);
    if (op == "<=") return truth(x.value <= y.value);
    if (op == ">") return truth(x.value > y.value);
    if (op == ">=") return truth(x.value >= y.value);
    if (op == "==") return truth(x.value == y.value);
    if (op == "!=") return truth(x.value != y.value);
    const bool left = a.value.value != 0, right = b.value.value != 0;
    if (op == "&&") return truth(left && right);
    if (op == "||") return truth(left || right);
    return truth(left != right);
  }

  std::mt19937_64 random_;
  std::array<Integer, kKinds.size()> variables_;
};

class RandomExpressions : public testing::TestWithParam<unsigned> {};

TEST_P(RandomExpressions, HaveTheValueThatCGives) {
  Generator generator(GetParam());
  constexpr int kCount = 200;
  std::vector<Generated> expected;
  std::string source = generator.prologue();
  for (int i = 0; i < kCount; ++i) {
    expected.push_back(generator.expression(1 + i % 4));
    source += fmt::format("BEGIN {{ trace({}); }}\n", expected.back().text);
  }

  const Outcome out = run(source);

  ASSERT_EQ(out.error, "");
  ASSERT_TRUE(out.faults.empty());
  ASSERT_EQ(out.values.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(out.values[i], Recorded(static_cast<std::int64_t>(expected[i].value.value)))
        << expected[i].text;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomExpressions, testing::Range(1U, 16U));

TEST(CompoundAssignment, WrapsAsTheVariablesTypeDoes) {
  const Outcome out =
      run("char c; unsigned short s; int i; unsigned u; long l;\n"
          "BEGIN { c = 127; c += 1; trace(c); s = 65535; trace(s++); trace(s); i = 0x7fffffff; "
          "trace(++i);"
          " u = 0; trace(u -= 1); l = -9; l /= 2; trace(l); l <<= 3; trace(l); u >>= 4; trace(u);"
          " i %= 10; trace(i); i ^= -1; trace(i); c |= 1; trace(c); }");

  ASSERT_EQ(out.error, "");
  const std::int64_t expected[] = {-128, 65535,      0,  INT32_MIN, UINT32_MAX, -4,
                                   -32,  0xfff'ffff, -8, 7,         -127};
  ASSERT_EQ(out.values.size(), std::size(expected));
  for (std::size_t i = 0; i < std::size(expected); ++i)
    EXPECT_EQ(out.values[i], Recorded(expected[i])) << i;
}

}  // namespace
}  // namespace ringside::d
