// Random well-typed integer expressions mean in D what they mean in C: one C program with all of
// them, made by the system's compiler, says what each is worth. Shifts beyond the width and
// divisions by zero are D's own business and left out.
// RINGSIDE_EXPRESSIONS=100000 runs more of them, RINGSIDE_SEED=n others.
#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "dif/d/testing/c_compiler.h"
#include "dif/d/testing/program_runner.h"

namespace ringside::d {
namespace {

constexpr std::string_view kTypes[] = {"signed char",    "unsigned char", "short",
                                       "unsigned short", "int",           "unsigned int",
                                       "long",           "unsigned long", "long long"};
constexpr std::size_t kTypeCount = std::size(kTypes);
constexpr int kValues = 3;    // variables of each type
constexpr int kDepth = 4;     // so that seven registers do
constexpr int kAtOnce = 100;  // expressions of one D program

class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  std::string constant() {
    constexpr std::string_view kConstants[] = {
        "0",     "1",          "2",           "3",           "7",           "100",
        "127",   "128",        "255",         "256",         "32767",       "32768",
        "65535", "2147483647", "2147483648",  "4294967295",  "1U",          "0xffffffffU",
        "1L",    "5UL",        "0x80000000U", "0x7fffffffL", "9000000000L", "0xffffffffffffffffUL",
        "'a'",   "077"};
    return std::string(pick(kConstants));
  }
  std::string variable(std::size_t type) {
    return "v" + std::to_string(type) + "_" + std::to_string(below(kValues));
  }
  std::string leaf() { return below(3) == 0 ? constant() : variable(below(kTypeCount)); }

  std::string expression(int depth) {
    if (depth == 0) return leaf();
    const std::string a = expression(depth - 1);
    switch (below(10)) {
      case 0: return "(" + std::string(kTypes[below(kTypeCount)]) + ")(" + a + ")";
      case 1: {
        constexpr std::string_view kUnary[] = {"-", "~", "!", "+"};
        return std::string(pick(kUnary)) + "(" + a + ")";
      }
      case 2:
        return "((" + a + ") ? (" + expression(depth - 1) + ") : (" + expression(depth - 1) + "))";
      case 3: return "((" + a + ")" + (below(2) ? " / " : " % ") + divisor() + ")";
      case 4:
        return "((" + a + ")" + (below(2) ? " << " : " >> ") + std::to_string(below(32)) + ")";
      default: {
        constexpr std::string_view kBinary[] = {"+",  "-", "*",  "&",  "|",  "^",  "<",
                                                "<=", ">", ">=", "==", "!=", "&&", "||"};
        return "((" + a + ") " + std::string(pick(kBinary)) + " (" + expression(depth - 1) + "))";
      }
    }
  }

  /// An assignment to a variable of each kind of width, and what it leaves behind.
  std::string change() {
    const std::string target = "w" + std::to_string(below(kTypeCount));
    const std::string start = "(" + target + " = " + leaf() + ", ";
    constexpr std::string_view kCompound[] = {"+=", "-=", "*=", "&=", "|=", "^="};
    switch (below(4)) {
      case 0: return start + target + (below(2) ? "++" : "--") + ")";
      case 1: return start + (below(2) ? "++" : "--") + target + ")";
      case 2: return start + target + " /= " + divisor() + ", " + target + ")";
      default:
        return start + target + " " + std::string(pick(kCompound)) + " " + expression(2) + ", " +
               target + ")";
    }
  }

  std::string any() {
    return below(5) == 0 ? change() : expression(1 + static_cast<int>(below(kDepth)));
  }

  std::int64_t value() {
    constexpr std::int64_t kEdges[] = {0,         1,         -1,        127,   -128,
                                       255,       32767,     -32768,    65535, INT32_MAX,
                                       INT32_MIN, INT64_MAX, UINT32_MAX};
    return below(2) == 0 ? pick(kEdges) : static_cast<std::int64_t>(random_());
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }
  template <class T, std::size_t N>
  T pick(const T (&all)[N]) {
    return all[below(N)];
  }
  std::string divisor() {  // never -1: C does not say what INT_MIN / -1 is
    constexpr std::string_view kDivisors[] = {"1", "2", "3", "7U", "10L", "1000UL", "65536"};
    return std::string(pick(kDivisors));
  }

  std::mt19937_64 random_;
};

struct Program {
  std::string declarations, assignments;
  std::vector<std::string> expressions;
};

Program generate(unsigned seed, std::size_t count) {
  Generator generator(seed);
  Program program;
  for (std::size_t type = 0; type < kTypeCount; ++type) {
    const std::string spelled(kTypes[type]), number = std::to_string(type);
    program.declarations += spelled + " w" + number + ";\n";
    for (int i = 0; i < kValues; ++i) {
      const std::string name = "v" + number + "_" + std::to_string(i);
      const auto value = static_cast<std::uint64_t>(generator.value());
      program.declarations += spelled + " " + name + ";\n";
      program.assignments += name + " = (" + spelled + ")" + std::to_string(value) + "UL;\n";
    }
  }
  while (program.expressions.size() < count) program.expressions.push_back(generator.any());
  return program;
}

/// What C says, in order; empty when there is no compiler.
std::vector<std::int64_t> ask_c(const Program& program) {
  std::ostringstream c;
  c << "#include <stdio.h>\n"
    << program.declarations << "int main(void) {\n"
    << program.assignments;
  for (const std::string& e : program.expressions)
    c << "printf(\"%lld\\n\", (long long)(" << e << "));\n";
  c << "return 0; }\n";
  return run_c(c.str());
}

TEST(Expressions, MeanWhatTheCCompilerSays) {
  const Program program = generate(static_cast<unsigned>(setting("RINGSIDE_SEED", 20)),
                                   setting("RINGSIDE_EXPRESSIONS", 1000));
  const auto expected = ask_c(program);
  if (expected.empty()) GTEST_SKIP() << "no C compiler to compare with";
  ASSERT_EQ(expected.size(), program.expressions.size());

  std::size_t wrong = 0;
  for (std::size_t from = 0; from < expected.size() && wrong < 10; from += kAtOnce) {
    const std::size_t to = std::min(from + kAtOnce, expected.size());
    std::string source = program.declarations + "BEGIN {\n" + program.assignments;
    for (std::size_t i = from; i < to; ++i) source += "trace(" + program.expressions[i] + ");\n";
    const Outcome out = run(source + "}");
    ASSERT_EQ(out.error, "");
    ASSERT_EQ(out.values.size(), to - from);
    for (std::size_t i = from; i < to; ++i) {
      if (out.values[i - from] == Recorded(expected[i])) continue;
      ++wrong;
      ADD_FAILURE() << program.expressions[i]
                    << "\nD: " << std::get<std::int64_t>(out.values[i - from])
                    << "\nC: " << expected[i] << "\n"
                    << program.assignments;
    }
  }
}

}  // namespace
}  // namespace ringside::d
