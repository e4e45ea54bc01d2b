// Random well-typed integer expressions mean in D what D's rules say: the Guide's types (the wider
// wins, chars and shorts stay what they are), 64 bits wide values that only some casts, stores and
// what records them cut. The rules are told anew here, as C on 64-bit integers; one
// C program with all expressions, made by the system's compiler, says what each is worth. Divisions
// by zero are left out. RINGSIDE_EXPRESSIONS=100000 runs more of them, RINGSIDE_SEED=n others.
#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "dif/d/testing/c_compiler.h"
#include "dif/d/testing/program_runner.h"

namespace ringside::d {
namespace {

struct IntegerType {
  std::string_view name;
  int size;
  bool is_signed;
};
constexpr IntegerType kTypes[] = {{"signed char", 1, true}, {"unsigned char", 1, false},
                                  {"short", 2, true},       {"unsigned short", 2, false},
                                  {"int", 4, true},         {"unsigned int", 4, false},
                                  {"long", 8, true},        {"unsigned long", 8, false},
                                  {"long long", 8, true}};
constexpr std::size_t kTypeCount = std::size(kTypes);
constexpr IntegerType kInt = kTypes[4], kUnsigned = kTypes[5], kLong = kTypes[6],
                      kUnsignedLong = kTypes[7];
constexpr int kValues = 3;    // variables of each type
constexpr int kDepth = 4;     // so that seven registers do
constexpr int kAtOnce = 100;  // expressions of one D program

struct Constant {
  std::string_view text;
  IntegerType type;
};
constexpr Constant kConstants[] = {{"0", kInt},
                                   {"1", kInt},
                                   {"2", kInt},
                                   {"3", kInt},
                                   {"7", kInt},
                                   {"100", kInt},
                                   {"127", kInt},
                                   {"128", kInt},
                                   {"255", kInt},
                                   {"256", kInt},
                                   {"32767", kInt},
                                   {"32768", kInt},
                                   {"65535", kInt},
                                   {"2147483647", kInt},
                                   {"2147483648", kLong},
                                   {"4294967295", kLong},
                                   {"1U", kUnsigned},
                                   {"0xffffffff", kUnsigned},
                                   {"1L", kLong},
                                   {"5UL", kUnsignedLong},
                                   {"0x80000000", kUnsigned},
                                   {"0x7fffffffL", kLong},
                                   {"9000000000", kLong},
                                   {"0xffffffffffffffff", kUnsignedLong},
                                   {"'a'", kInt},
                                   {"077", kInt}};

/// An expression of D, and the same in C, where its type is `L`: long long. `U` is unsigned.
struct Both {
  std::string d, c;
  IntegerType type;
  bool constant = false;  // D may know its value
};

std::string unsigned_of(const Both& x) {
  return "(U)(" + x.c + ")";
}

/// The wider type, or the unsigned one of two that are equally wide.
IntegerType common(const IntegerType& a, const IntegerType& b) {
  if (a.size != b.size) return a.size > b.size ? a : b;
  return a.is_signed ? b : a;
}

/// a op b in C; `type` says whether the operands have signs.
std::string apply(const std::string& op, const Both& a, const Both& b, const IntegerType& type) {
  const bool wraps = op == "+" || op == "-" || op == "*";
  if (type.is_signed && !wraps) return "(L)((" + a.c + ") " + op + " (" + b.c + "))";
  return "(L)(" + unsigned_of(a) + " " + op + " " + unsigned_of(b) + ")";
}

/// A value of type `from` as a variable of type `to` keeps it: 8 bytes stay whole in 4.
std::string kept(const std::string& value, const IntegerType& from, const IntegerType& to) {
  const bool cut = to.size < 4 || (to.size == 4 && from.size <= 4);
  return cut ? "(L)(" + std::string(to.name) + ")(" + value + ")" : value;
}

class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  Both constant() { return constant(pick(kConstants)); }
  Both variable(std::size_t type) {
    const std::string name = "v" + std::to_string(type) + "_" + std::to_string(below(kValues));
    return {name, "(L)" + name, kTypes[type]};
  }
  Both leaf() { return below(3) == 0 ? constant() : variable(below(kTypeCount)); }

  Both expression(int depth) {
    if (depth == 0) return leaf();
    const Both a = expression(depth - 1);
    switch (below(10)) {
      case 0: return cast(a);
      case 1: return unary(a);
      case 2: return conditional(a, expression(depth - 1), expression(depth - 1));
      case 3: return binary(a, below(2) ? "/" : "%", divisor());
      case 4: return shift(a);
      default: {
        constexpr std::string_view kBinary[] = {"+",  "-", "*",  "&",  "|",  "^",  "<",
                                                "<=", ">", ">=", "==", "!=", "&&", "||"};
        const std::string op(pick(kBinary));
        return binary(a, op, expression(depth - 1));
      }
    }
  }

  /// An assignment to a variable of each kind of width; its value is what is stored.
  Both change() {
    const std::size_t number = below(kTypeCount);
    const IntegerType& type = kTypes[number];
    const std::string w = "w" + std::to_string(number);
    const Both start = leaf(), old{"", "(L)" + w, type};
    const std::string first = kept(start.c, start.type, type);
    const auto made = [&](const std::string& d, const std::string& value, const Both& by) {
      const std::string now = kept(value, common(type, by.type), type);
      return Both{"(" + w + " = " + start.d + ", " + d + ")",
                  "(" + w + " = " + first + ", now = " + now + ", " + w + " = now, now)", type};
    };
    constexpr std::string_view kCompound[] = {"+", "-", "*", "&", "|", "^"};
    const std::string step(below(2) ? "+" : "-");
    const Both one{"1", "1", kInt};
    switch (below(4)) {
      case 0: {  // the old value
        Both result = made(w + step + step, apply(step, old, one, type), one);
        result.c = "(was = " + first + ", " + result.c + ", was)";
        return result;
      }
      case 1: return made(step + step + w, apply(step, old, one, type), one);
      case 2: {
        const Both by = divisor();
        return made(w + " /= " + by.d, apply("/", old, by, type), by);
      }
      default: {
        const std::string op(pick(kCompound));
        const Both by = expression(2);
        return made(w + " " + op + "= " + by.d, apply(op, old, by, type), by);
      }
    }
  }

  /// The argument of trace(), and the value that is recorded: all bits, or those that the type has.
  Both any() {
    const Both e = below(5) == 0 ? change() : expression(1 + static_cast<int>(below(kDepth)));
    if (below(2) == 0) return {"(long long)" + e.d, e.c, e.type};
    return {e.d, "(L)(" + std::string(e.type.name) + ")(" + e.c + ")", e.type};
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
  static Both constant(const Constant& known) {
    const std::string text(known.text);
    return {text, "(L)" + text, known.type, true};
  }
  Both divisor() {  // never -1: C does not say what LONG_MIN / -1 is
    constexpr Constant kDivisors[] = {{"1", kInt},       {"2", kInt},    {"3", kInt},
                                      {"7U", kUnsigned}, {"10L", kLong}, {"1000UL", kUnsignedLong},
                                      {"65536", kInt}};
    return constant(pick(kDivisors));
  }

  /// Cuts to fewer bits, and where a sign goes or comes; else names another type only.
  Both cast(const Both& a) {
    const IntegerType& to = kTypes[below(kTypeCount)];
    const bool cuts = to.size < a.type.size ||
                      (to.size == a.type.size && to.is_signed != a.type.is_signed) ||
                      (a.type.is_signed && !to.is_signed);
    const std::string name(to.name);
    return {"((" + name + ")" + a.d + ")", cuts ? "(L)(" + name + ")(" + a.c + ")" : a.c, to,
            a.constant};
  }
  Both unary(const Both& a) {
    constexpr std::string_view kUnary[] = {"-", "~", "!", "+"};
    std::string op(pick(kUnary));
    if (op == "-" && a.constant && !a.type.is_signed) op = "~";  // -1U is cut
    if (op == "!") return {"(!" + a.d + ")", "(L)!(" + a.c + ")", kInt, a.constant};
    return {"(" + op + a.d + ")", "(L)(" + op + unsigned_of(a) + ")", a.type, a.constant};
  }
  static Both conditional(const Both& a, const Both& b, const Both& c) {
    // A condition that is a constant would take its side at once, and that side's type.
    return {"((v0_0, " + a.d + ") ? " + b.d + " : " + c.d + ")",
            "((" + a.c + ") ? (" + b.c + ") : (" + c.c + "))", common(b.type, c.type), false};
  }
  Both shift(const Both& a) {
    const std::string op(below(2) ? "<<" : ">>"), count = std::to_string(below(64));
    const bool keeps_sign = op == ">>" && a.type.is_signed;
    const std::string operand = keeps_sign ? "(" + a.c + ")" : unsigned_of(a);
    return {"(" + a.d + " " + op + " " + count + ")",
            "(L)(" + operand + " " + op + " " + count + ")", a.type, a.constant};
  }
  static Both binary(const Both& a, const std::string& op, const Both& b) {
    const bool is_number = std::string_view("+-*/%&|^").find(op) != std::string_view::npos;
    const IntegerType type = common(a.type, b.type);
    return {"(" + a.d + " " + op + " " + b.d + ")", apply(op, a, b, type), is_number ? type : kInt,
            a.constant && b.constant};
  }

  std::mt19937_64 random_;
};

struct Program {
  std::string declarations, assignments;
  std::string changed;  // declares, for D, the variables that expressions assign to
  std::vector<Both> expressions;
};

Program generate(unsigned seed, std::size_t count) {
  Generator generator(seed);
  Program program;
  for (std::size_t type = 0; type < kTypeCount; ++type) {
    const std::string spelled(kTypes[type].name), number = std::to_string(type);
    program.changed += spelled + " w" + number + ";\n";
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

/// The values that C computes, in order; empty when there is no compiler.
std::vector<std::int64_t> ask_c(const Program& program) {
  std::ostringstream c;
  c << "#include <stdio.h>\ntypedef long long L;\ntypedef unsigned long long U;\nL now, was;\n"
    << program.declarations;
  for (std::size_t type = 0; type < kTypeCount; ++type) c << "L w" << type << ";\n";
  c << "int main(void) {\n" << program.assignments;
  for (const Both& e : program.expressions) c << "printf(\"%lld\\n\", " << e.c << ");\n";
  c << "return 0; }\n";
  return run_c(c.str());
}

TEST(Expressions, MeanWhatTheCCompilerSaysOf64Bits) {
  const Program program = generate(static_cast<unsigned>(setting("RINGSIDE_SEED", 20)),
                                   setting("RINGSIDE_EXPRESSIONS", 1000));
  const auto expected = ask_c(program);
  if (expected.empty()) GTEST_SKIP() << "no C compiler to compare with";
  ASSERT_EQ(expected.size(), program.expressions.size());

  std::size_t wrong = 0;
  for (std::size_t from = 0; from < expected.size() && wrong < 10; from += kAtOnce) {
    const std::size_t to = std::min(from + kAtOnce, expected.size());
    std::string source = program.declarations + program.changed + "BEGIN {\n" + program.assignments;
    for (std::size_t i = from; i < to; ++i) source += "trace(" + program.expressions[i].d + ");\n";
    const Outcome out = run(source + "}");
    ASSERT_EQ(out.error, "");
    ASSERT_EQ(out.values.size(), to - from);
    for (std::size_t i = from; i < to; ++i) {
      if (out.values[i - from] == Recorded(expected[i])) continue;
      ++wrong;
      ADD_FAILURE() << program.expressions[i].d << "\n"
                    << program.expressions[i].c
                    << "\nD: " << std::get<std::int64_t>(out.values[i - from])
                    << "\nC: " << expected[i] << "\n"
                    << program.assignments;
    }
  }
}

}  // namespace
}  // namespace ringside::d
