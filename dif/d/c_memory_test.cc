// Random structures, unions, arrays, bit-fields, enumerations and pointers to their parts mean in D
// what they mean in C: layouts, assignments and what they leave in the other members. One C
// program, made by the system's compiler, says what is right. Variables of every scope of D take
// part. RINGSIDE_PROGRAMS=1000 runs more of them, RINGSIDE_SEED=n others.
#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "dif/d/testing/c_compiler.h"
#include "dif/d/testing/program_runner.h"

namespace ringside::d {
namespace {

constexpr std::string_view kScalarTypes[] = {
    "char",           "signed char", "unsigned char",      "short",
    "unsigned short", "int",         "unsigned int",       "long",
    "unsigned long",  "long long",   "unsigned long long", "enum color"};
constexpr int kMaxNesting = 3;   // of structures in one another
constexpr int kStatements = 12;  // of one program
constexpr std::string_view kEnum =
    "enum color { NONE = -1, GREEN = 5, BLUE, LAST = 2147483647 };\n";

/// A scalar that can be reached from the variable.
struct Part {
  std::string path;  // ".a.b[2]"
  std::string type;  // that a pointer to it points at; empty for a bit-field
};

class StructureGenerator {
 public:
  explicit StructureGenerator(std::uint64_t seed) : random_(seed) {}

  /// Declares a type; its scalars become parts().
  std::string declare(const std::string& tag) {
    return body("struct " + tag, "", kMaxNesting) + ";\n";
  }
  const std::vector<Part>& parts() const { return parts_; }
  std::vector<std::string> offsets() const { return members_; }

  /// A statement, with $ for the variable; and the part that it changes.
  std::string statement() {
    const Part& part = pick(parts_);
    const std::string target = "$" + part.path;
    switch (below(part.type.empty() || part.type == "enum color" ? 2 : 5)) {
      case 0: return target + " = " + number();
      case 1: return target + " = $" + pick(parts_).path;
      case 2: return target + " += " + number();
      case 3: return target + (below(2) ? "++" : "--");
      default: return "*(&" + target + ") ^= " + number();
    }
  }
  std::size_t below(std::size_t n) { return random_() % n; }

 private:
  std::string body(const std::string& head, const std::string& path, int depth) {
    std::string text = head + " {\n";
    const bool is_union = head.starts_with("union");
    for (std::size_t count = 1 + below(5); count > 0; --count) {
      text += member(path, depth, is_union) + ";\n";
    }
    return text + "}";
  }

  std::string member(const std::string& path, int depth, bool) {
    const std::string name = "m" + std::to_string(names_++);
    const std::string inner = path + "." + name;
    switch (below(depth > 1 ? 8 : 5)) {
      case 0: {  // a bit-field
        constexpr std::string_view kBase[] = {"int", "unsigned int", "unsigned long",
                                              "unsigned char", "short"};
        constexpr std::size_t kBits[] = {32, 32, 64, 8, 16};
        const std::size_t which = below(std::size(kBase));
        parts_.push_back({inner, ""});
        return std::string(which == 0 ? "signed int" : kBase[which]) + " " + name + ":" +
               std::to_string(1 + below(kBits[which]));
      }
      case 1: {
        const std::size_t count = 1 + below(4);
        const std::string type(kScalarTypes[below(std::size(kScalarTypes))]);
        for (std::size_t i = 0; i < count; ++i) {
          parts_.push_back({inner + "[" + std::to_string(i) + "]", type});
        }
        members_.push_back(inner);
        return type + " " + name + "[" + std::to_string(count) + "]";
      }
      case 5: members_.push_back(inner); return body("struct", inner, depth - 1) + " " + name;
      case 6: members_.push_back(inner); return body("union", inner, depth - 1) + " " + name;
      case 7: return body(below(2) ? "struct" : "union", path, depth - 1);  // anonymous
      default: {
        const std::string type(kScalarTypes[below(std::size(kScalarTypes))]);
        parts_.push_back({inner, type});
        members_.push_back(inner);
        return type + " " + name;
      }
    }
  }

  std::string number() {
    constexpr std::string_view kNumbers[] = {"0",   "1",     "-1",         "5",          "127",
                                             "200", "40000", "2147483647", "4294967295", "-129"};
    return std::string(kNumbers[below(std::size(kNumbers))]);
  }
  template <class T>
  const T& pick(const std::vector<T>& all) {
    return all[below(all.size())];
  }

  std::mt19937_64 random_;
  int names_ = 0;
  std::vector<Part> parts_;
  std::vector<std::string> members_;  // that have an offset
};

struct StructureProgram {
  std::string type;
  std::vector<std::string> statements, expressions;  // with $ for the variable
};

StructureProgram generate(std::uint64_t seed) {
  StructureGenerator generator(seed);
  StructureProgram program;
  program.type = generator.declare("s");
  // Nothing of a dynamic variable can be read before something of it was assigned.
  program.statements.push_back("$" + generator.parts()[0].path + " = 0");
  for (int i = 0; i < kStatements; ++i) program.statements.push_back(generator.statement());
  program.expressions.push_back("sizeof (struct s)");
  for (const std::string& path : generator.offsets()) {
    if (path.find('.', 1) == path.npos) {
      program.expressions.push_back("offsetof(struct s, " + path.substr(1) + ")");
    }
    program.expressions.push_back("sizeof ($" + path + ")");
  }
  const Part* last = nullptr;
  for (const Part& part : generator.parts()) {
    program.expressions.push_back("$" + part.path);
    if (part.type.empty()) continue;
    program.expressions.push_back("*(&$" + part.path + ")");
    if (last != nullptr && last->type == part.type) {
      program.expressions.push_back("&$" + part.path + " > &$" + last->path);
      program.expressions.push_back("(char *)&$" + part.path + " - (char *)&$" + last->path);
    }
    last = &part;
  }
  return program;
}

std::string with_variable(const std::string& text, std::string_view variable) {
  std::string result;
  for (const char c : text) c == '$' ? result += variable : result += c;
  return result;
}

/// The values that C computes for all programs, one after another; empty when there is no compiler.
std::vector<std::int64_t> ask_c(const std::vector<StructureProgram>& programs) {
  std::ostringstream c;
  c << "#include <stdio.h>\n#include <stddef.h>\n" << kEnum;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    c << "void f" << i << "(void) {\n" << programs[i].type << "static struct s g;\n";
    for (const std::string& s : programs[i].statements) c << with_variable(s, "g") << ";\n";
    for (const std::string& e : programs[i].expressions) {
      c << "printf(\"%lld\\n\", (long long)(" << with_variable(e, "g") << "));\n";
    }
    c << "}\n";
  }
  c << "int main(void) {\n";
  for (std::size_t i = 0; i < programs.size(); ++i) c << "f" << i << "();\n";
  c << "return 0; }\n";
  return run_c(c.str(), "-fno-strict-aliasing");
}

/// The D program for one scope of variable.
std::string source(const StructureProgram& program, std::string_view declaration,
                   std::string_view variable) {
  std::string text = std::string(kEnum) + program.type + std::string(declaration) + "BEGIN {\n";
  for (const std::string& s : program.statements) text += with_variable(s, variable) + ";\n";
  for (const std::string& e : program.expressions) {
    text += "trace((long)(" + with_variable(e, variable) + "));\n";
  }
  return text + "}";
}

TEST(Structures, MeanWhatTheCCompilerSays) {
  struct Scope {
    std::string_view declaration, variable;
  };
  constexpr Scope kScopes[] = {{"struct s g;\n", "g"},
                               {"self struct s g;\n", "self->g"},
                               {"this struct s g;\n", "this->g"},
                               {"struct s g[string, int];\n", "g[\"a\", 1]"},
                               {"self struct s g[int];\n", "self->g[3]"}};
  const std::size_t seed = setting("RINGSIDE_SEED", 7);
  std::vector<StructureProgram> programs;
  for (std::size_t i = 0; i < setting("RINGSIDE_PROGRAMS", 25); ++i) {
    programs.push_back(generate(seed * 100'000 + i));
  }
  const auto expected = ask_c(programs);
  if (expected.empty()) GTEST_SKIP() << "no C compiler to compare with";

  std::size_t at = 0, wrong = 0;
  for (std::size_t i = 0; i < programs.size() && wrong < 5; ++i) {
    const StructureProgram& program = programs[i];
    const Scope& scope = kScopes[i % std::size(kScopes)];
    const std::string text = source(program, scope.declaration, scope.variable);
    const Outcome out = run(text);
    ASSERT_EQ(out.error, "") << text;
    ASSERT_TRUE(out.faults.empty()) << text;
    ASSERT_EQ(out.values.size(), program.expressions.size());
    for (const std::string& expression : program.expressions) {
      const std::size_t index = static_cast<std::size_t>(&expression - program.expressions.data());
      if (out.values[index] == Recorded(expected.at(at + index))) continue;
      ++wrong;
      ADD_FAILURE() << expression << "\nD: " << std::get<std::int64_t>(out.values[index])
                    << "\nC: " << expected[at + index] << "\n"
                    << text;
      break;
    }
    at += program.expressions.size();
  }
}

}  // namespace
}  // namespace ringside::d
