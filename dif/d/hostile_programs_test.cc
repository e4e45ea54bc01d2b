// Programs that are made to take for ever, or all memory: each is refused or compiled at once.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <ctime>

#include "dif/d/testing/program_runner.h"

namespace ringside::d {
namespace {

std::string repeated(std::string_view text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

/// Seconds of a processor that this thread has had: a busy host does not make them more.
long processor_seconds() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return used.tv_sec;
}

/// The message, after a time that is long for what it is but short for what it must not be.
std::string error_soon(const std::string& source) {
  const long start = processor_seconds();
  std::string error = error_of(source);
  EXPECT_LT(processor_seconds() - start, 20);
  return error;
}

TEST(HostileProgram, StructuresThatHoldTheOneBeforeTwice) {
  std::string source = "struct s0 { int a; int b; };\n";
  for (int i = 1; i < 40; ++i) {
    source += fmt::format("struct s{0} {{ struct s{1} a; struct s{1} b; }};\n", i, i - 1);
  }
  EXPECT_NE(error_soon(source + "BEGIN { trace(1); }").find("[D_DECL_ARRBIG]"), std::string::npos);
}

TEST(HostileProgram, TokensOfAMebibyte) {
  const std::string many(1 << 20, 'x');
  const std::string blanks(many.size(), ' '), lines(many.size(), '\n');
  for (const std::string& between : {"/*" + many + "*/", "/*" + lines + "*/", blanks, lines}) {
    EXPECT_EQ(error_soon("BEGIN " + between + "/ 1 /" + between + "{" + between + "trace(1);" +
                         between + "}" + between),
              "");
  }
  EXPECT_EQ(error_soon("int " + many + "; BEGIN { " + many + " = 1; }"), "");
  EXPECT_NE(error_soon("BEGIN { trace(" + std::string(1 << 20, '1') + "); }"), "");
  EXPECT_NE(error_soon("#" + many + "\nBEGIN { }"), "");
  for (const char* quote : {"\"", "'"}) {
    EXPECT_NE(error_soon("BEGIN { trace(" + (quote + many) + quote + "); }"), "");
  }
  EXPECT_NE(error_soon("BEGIN { trace(self" + blanks + "); }").find("[D_IDENT_BADREF]"),
            std::string::npos);
}

TEST(HostileProgram, UnionsThatHoldTheOneBeforeTwice) {
  std::string source = "union s0 { long a; int b; };\n";
  for (int i = 1; i < 40; ++i) {
    source += fmt::format("union s{0} {{ union s{1} a; union s{1} b; }};\n", i, i - 1);
  }
  EXPECT_EQ(error_soon(source + "struct t { char c; union s39 u; };\n"
                                "BEGIN { trace(offsetof(struct t, u)); }"),
            "");
}

TEST(HostileProgram, AStructureOfManyMembers) {
  std::string source = "struct s {";
  for (int i = 0; i < 5000; ++i) source += fmt::format(" int a{};", i);
  EXPECT_EQ(error_soon(source + "}; BEGIN { trace(sizeof(struct s)); }"), "");
}

TEST(HostileProgram, MembersOfAnonymousMembersAreTakenNames) {
  EXPECT_NE(error_of("struct s { union { struct { int x; }; int y; }; int x; }; BEGIN { }")
                .find("duplicate member"),
            std::string::npos);
  EXPECT_NE(error_of("struct s { int x; union { struct { int x; }; int y; }; }; BEGIN { }")
                .find("duplicate member"),
            std::string::npos);
  EXPECT_EQ(
      error_of("struct s { int x; int : 3; int : 4; union { int y; }; }; BEGIN { trace(1); }"), "");
}

TEST(HostileProgram, AProviderOfManyProbes) {
  std::string source = "provider p {";
  for (int i = 0; i < 3000; ++i) source += fmt::format(" probe a{}(int);", i);
  EXPECT_EQ(error_soon(source + "}; BEGIN { trace(1); }"), "");
}

TEST(HostileProgram, TracememOfMoreThanARecordCanHold) {
  EXPECT_NE(error_of("BEGIN { tracemem(0, 4294967295); }").find("[D_TRACEMEM_SIZE]"),
            std::string::npos);
}

TEST(HostileProgram, StepsWithinStepsAndConditionsWithinConditions) {
  EXPECT_EQ(
      error_soon("int x[int]; BEGIN { " + repeated("x[", 28) + "1]" + repeated("++]", 27) + "; }"),
      "");
  EXPECT_EQ(error_soon("int x[int]; BEGIN { " + repeated("x[", 200) + "1]" + repeated("++]", 199) +
                       "; }"),
            "");
  EXPECT_NE(error_soon("BEGIN { trace(" + repeated("1?1:", 50'000) + "1); }"), "");
  EXPECT_NE(error_soon("BEGIN { trace(" + repeated("(", 100'000) + "1); }"), "");
}

}  // namespace
}  // namespace ringside::d
