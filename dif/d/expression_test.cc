// Random well-typed integer expressions, compiled and fired, against a reference evaluator that
// knows D's conversions by itself. The seed is fixed: a failure prints the expression.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "dif/d/testing/program_runner.h"

namespace ringside::d {
namespace {

/// An integer as D sees it: 64 bits, whatever its type's size is.
struct Integer {
  std::uint64_t bits = 0;
  int size = 4;
  bool is_signed = true;
  std::int64_t number() const { return static_cast<std::int64_t>(bits); }
};

/// The part of the bits that a variable or a record of the type keeps.
Integer stored(std::uint64_t bits, int size, bool is_signed) {
  const int unused = 64 - size * 8;
  const std::uint64_t top = bits << unused;
  const std::uint64_t kept =
      is_signed ? static_cast<std::uint64_t>(static_cast<std::int64_t>(top) >> unused)
                : top >> unused;
  return {kept, size, is_signed};
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
  bool constant = false;  // the compiler may know the value
};

class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {
    for (std::size_t i = 0; i < kKinds.size(); ++i) {
      variables_[i] = stored(interesting(), kKinds[i].size, kKinds[i].is_signed);
    }
  }

  /// Declares and sets v0..v7.
  std::string prologue() const {
    std::string declarations, sets;
    for (std::size_t i = 0; i < kKinds.size(); ++i) {
      declarations += fmt::format("{} v{};\n", kKinds[i].name, i);
      sets += fmt::format("v{} = {:#x};", i, variables_[i].bits);
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

  std::uint64_t interesting() {
    constexpr std::int64_t kValues[] = {
        0,     1,     -1,    2,         7,         127,        128,       255,      256,
        32767, 65535, 65536, INT32_MAX, INT32_MIN, UINT32_MAX, INT64_MAX, INT64_MIN};
    const std::int64_t value = pick(3) != 0 ? kValues[pick(std::size(kValues))]
                                            : static_cast<std::int64_t>(random_()) >> pick(60);
    return static_cast<std::uint64_t>(value);
  }

  Generated leaf() {
    const std::size_t i = pick(kKinds.size());
    if (pick(4) != 0) return {fmt::format("v{}", i), variables_[i]};
    const Integer value = stored(interesting(), kKinds[i].size, kKinds[i].is_signed);
    // As it is written it is an unsigned long; the cast makes it what it is to be.
    return {fmt::format("({}){:#x}UL", kKinds[i].name, value.bits), value, true};
  }

  Generated unary(int depth) {
    const Generated a = expression(depth - 1);
    Integer x = a.value;
    // -1U has no bits beyond its type; only constants are like that.
    const bool negates = pick(2) == 0 && (!a.constant || x.is_signed);
    switch (pick(3)) {
      case 0:
        x.bits = negates ? 0 - x.bits : ~x.bits;
        return {(negates ? "(-" : "(~") + a.text + ")", x, a.constant};
      case 1: return {"(+" + a.text + ")", x, a.constant};
      default: return {"(!" + a.text + ")", {x.bits == 0, 4, true}, a.constant};
    }
  }

  Generated cast(int depth) {
    const Generated a = expression(depth - 1);
    const Kind& kind = kKinds[pick(kKinds.size())];
    const Integer& x = a.value;
    const bool cuts = kind.size < x.size || (!kind.is_signed && x.is_signed) ||
                      (kind.size == x.size && kind.is_signed != x.is_signed);
    return {fmt::format("(({}){})", kind.name, a.text),
            cuts ? stored(x.bits, kind.size, kind.is_signed)
                 : Integer{x.bits, kind.size, kind.is_signed},
            a.constant};
  }

  /// `bits` with the type of what an operator makes of a and b: the wider, or the unsigned one.
  static Integer common(std::uint64_t bits, const Integer& a, const Integer& b) {
    if (a.size == b.size) return {bits, a.size, a.is_signed && b.is_signed};
    const Integer& wider = a.size > b.size ? a : b;
    return {bits, wider.size, wider.is_signed};
  }

  Generated conditional(int depth) {
    const Generated a = expression(depth - 1), b = expression(depth - 1), c = expression(depth - 1);
    const Integer& chosen = a.value.bits != 0 ? b.value : c.value;
    // One that is a constant would take its side at once, and that side's type.
    return {fmt::format("((v0, {}) ? {} : {})", a.text, b.text, c.text),
            common(chosen.bits, b.value, c.value), false};
  }

  Generated shift(int depth) {
    const Generated a = expression(depth - 1), b = expression(depth - 1);
    Integer x = a.value;
    const std::uint64_t count = b.value.bits & 63;
    const bool left = pick(2) == 0;
    if (left) {
      x.bits <<= count;
    } else {
      x.bits = x.is_signed ? static_cast<std::uint64_t>(x.number() >> count) : x.bits >> count;
    }
    return {fmt::format("({} {} {})", a.text, left ? "<<" : ">>", b.text), x,
            a.constant && b.constant};
  }

  Generated binary(int depth) {
    constexpr std::array kOps = {"+",  "-", "*",  "/",  "%",  "&",  "|",  "^", "<",
                                 "<=", ">", ">=", "==", "!=", "&&", "||", "^^"};
    const Generated a = expression(depth - 1);
    Generated b = expression(depth - 1);
    const std::string op = kOps[pick(kOps.size())];
    if (op == "/" || op == "%") {  // an odd divisor is not 0
      b.text = "(" + b.text + " | (char)1)";
      b.value.bits |= 1;
      b.value = common(b.value.bits, b.value, {1, 1, true});
    }
    Integer result = common(0, a.value, b.value);
    const bool is_number = std::string_view("+-*/%&|^").find(op) != std::string_view::npos;
    if (op.size() > 1 || !is_number) {
      result = {truth(op, a.value, b.value, result.is_signed), 4, true};
    } else {
      result.bits = result.is_signed ? signed_number(op, a.value.number(), b.value.number())
                                     : number(op, a.value.bits, b.value.bits);
    }
    return {"(" + a.text + " " + op + " " + b.text + ")", result, a.constant && b.constant};
  }

  static std::uint64_t number(const std::string& op, std::uint64_t x, std::uint64_t y) {
    switch (op[0]) {
      case '+': return x + y;
      case '-': return x - y;
      case '*': return x * y;
      case '/': return x / y;
      case '%': return x % y;
      case '&': return x & y;
      case '|': return x | y;
      default: return x ^ y;
    }
  }
  static std::uint64_t signed_number(const std::string& op, std::int64_t x, std::int64_t y) {
    const auto bits = static_cast<std::uint64_t>(x);
    if (op != "/" && op != "%") return number(op, bits, static_cast<std::uint64_t>(y));
    if (y == -1) return op == "/" ? 0 - bits : 0;  // INT64_MIN / -1 wraps
    return static_cast<std::uint64_t>(op == "/" ? x / y : x % y);
  }
  static bool truth(const std::string& op, const Integer& a, const Integer& b, bool is_signed) {
    const bool less = is_signed ? a.number() < b.number() : a.bits < b.bits;
    const bool equal = a.bits == b.bits, left = a.bits != 0, right = b.bits != 0;
    if (op == "<") return less;
    if (op == "<=") return less || equal;
    if (op == ">") return !less && !equal;
    if (op == ">=") return !less;
    if (op == "==") return equal;
    if (op == "!=") return !equal;
    if (op == "&&") return left && right;
    if (op == "||") return left || right;
    return left != right;
  }

  std::mt19937_64 random_;
  std::array<Integer, kKinds.size()> variables_;
};

class RandomExpressions : public testing::TestWithParam<unsigned> {};

TEST_P(RandomExpressions, HaveTheValueThatDGives) {
  Generator generator(GetParam());
  constexpr int kCount = 200;
  std::vector<Generated> expected;
  std::string source = generator.prologue();
  for (int i = 0; i < kCount; ++i) {
    expected.push_back(generator.expression(1 + i % 4));
    // As the record cuts it, and all of it.
    source += fmt::format("BEGIN {{ trace({0}); trace((long long){0}); }}\n", expected.back().text);
  }

  const Outcome out = run(source);

  ASSERT_EQ(out.error, "");
  ASSERT_TRUE(out.faults.empty());
  ASSERT_EQ(out.values.size(), 2 * expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Integer& x = expected[i].value;
    EXPECT_EQ(out.values[2 * i], Recorded(stored(x.bits, x.size, x.is_signed).number()))
        << expected[i].text;
    EXPECT_EQ(out.values[2 * i + 1], Recorded(x.number())) << "all of " << expected[i].text;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomExpressions, testing::Range(1U, 16U));

TEST(ValuesThatAreKept, HaveAllTheirBits) {
  const Outcome out =
      run("inline long wide[int n] = n;\n"
          "BEGIN { i = 1; trace(wide[i++ * 65536 * 65536]); trace(wide[i * 65536 * 65536]);"
          " a[1] = 0; a[i++ * 65536 * 65536 + 1] += 7; trace(a[1]); }");

  ASSERT_EQ(out.error, "");
  const std::vector<Recorded> expected{std::int64_t{1} << 32, std::int64_t{1} << 33,
                                       std::int64_t{7}};
  EXPECT_EQ(out.values, expected);
}

TEST(CompoundAssignment, CutsToItsVariable) {
  const Outcome out =
      run("char c; unsigned short s; int i; unsigned u; long l;\n"
          "BEGIN { c = 127; c += 1; trace(c); s = 65535; trace(s++); trace(s); i = 0x7fffffff; "
          "trace(++i);"
          " u = 0; trace(u -= 1); l = -9; l /= 2; trace(l); l <<= 3; trace(l); u >>= 4; trace(u);"
          " i %= 10; trace(i); i ^= -1; trace(i); c |= 1; trace(c); }");

  ASSERT_EQ(out.error, "");
  const std::int64_t expected[] = {-128, 65535,     0,  INT32_MIN, UINT32_MAX, -4,
                                   -32,  268435455, -8, 7,         -127};
  ASSERT_EQ(out.values.size(), std::size(expected));
  for (std::size_t i = 0; i < std::size(expected); ++i)
    EXPECT_EQ(out.values[i], Recorded(expected[i])) << i;
}

}  // namespace
}  // namespace ringside::d
