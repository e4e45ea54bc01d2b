// #pragma D, provider declarations, stability, versions.
#include <gtest/gtest.h>

#include "dif/d/resolve/identifier_table.h"
#include "dif/d/testing/program_runner.h"

namespace ringside::d {
namespace {

struct Case {
  const char* source;
  const char* tag;
};

class PragmaRefused : public testing::TestWithParam<Case> {};

TEST_P(PragmaRefused, WithItsTag) {
  const std::string message = error_of(std::string(GetParam().source) + "\nBEGIN { }");

  EXPECT_TRUE(message.starts_with("[" + std::string(GetParam().tag) + "] line 1: "))
      << GetParam().source << "\n"
      << message;
}

INSTANTIATE_TEST_SUITE_P(
    Programs, PragmaRefused,
    testing::Values(
        Case{"#pragma D nonsense", "D_PRAGMA_INVAL"}, Case{"#pragma D", "D_PRAGMA_MALFORM"},
        Case{"#pragma D attributes", "D_PRAGMA_MALFORM"},
        Case{"#pragma D attributes Stable x", "D_PRAGMA_INVAL"},
        Case{"#pragma D attributes Stable/Stable/Common x", "D_PRAGMA_UNUSED"},
        Case{"#pragma D attributes Stable/Stable/Common provider p probe", "D_PRAGMA_INVAL"},
        Case{"#pragma D binding \"1.0\"", "D_PRAGMA_MALFORM"},
        Case{"#pragma D binding \"one\" x", "D_PRAGMA_INVAL"},
        Case{"#pragma D binding \"1.0\" x", "D_PRAGMA_UNUSED"},
        Case{"#pragma D depends_on library procfs.d", "D_PRAGMA_DEPEND"},
        Case{"#pragma D depends_on provider nosuch", "D_PRAGMA_DEPEND"},
        Case{"#pragma D depends_on planet mars", "D_PRAGMA_INVAL"},
        Case{"#pragma D option", "D_PRAGMA_MALFORM"}, Case{"#nonsense", "D_PRAGCTL_INVAL"},
        Case{"#error no", "D_PRAGERR"}, Case{"#line x", "D_PRAGMA_MALFORM"},
        Case{"provider p1 { probe a(); };", "D_PROV_BADNAME"},
        Case{"provider p { probe a(); probe a(int); };", "D_PROV_PRDUP"},
        Case{"provider p { probe a(); }; provider p { probe a(); };", "D_PROV_INCOMPAT"},
        Case{"provider p { probe a(int, ...); };", "D_DECL_PROTO_VARARGS"},
        Case{"provider p { probe a(int, void); };", "D_DECL_PROTO_VOID"},
        Case{"struct o { int x; }; provider p { probe a(int *) : (struct o *); };",
             "D_PROV_PRXLATOR"}));

TEST(Pragma, MayStandBehindBlanksInAnyLine) {
  const Outcome out =
      run("\n\n\t#pragma D option quiet\n  #\tpragma\tD  option\tbufsize=4m\r\n"
          "int x;\n \v\f # pragma D attributes Evolving/Evolving/Common x\n"
          "BEGIN {\n\t#pragma D option zdefs\n\ttrace(1);\n}\n\n\t#pragma D option aggsize=1m");

  ASSERT_EQ(out.error, "");
  EXPECT_EQ(out.program.options,
            (std::map<std::string, std::string>{
                {"quiet", ""}, {"bufsize", "4m"}, {"zdefs", ""}, {"aggsize", "1m"}}));
  EXPECT_TRUE(error_of("\n\n\t#pragma D nonsense").starts_with("[D_PRAGMA_INVAL] line 3: "));
}

TEST(Pragma, InterpreterLinesMayStandAnywhere) {
  EXPECT_EQ(error_of("\n \n\t#!/usr/sbin/dtrace -s\nBEGIN { }"), "");
  EXPECT_EQ(error_of("BEGIN { }\n#!/usr/sbin/dtrace -s"), "");
}

TEST(Pragma, ScopeErrorsNameTheirOwnLine) {
  const std::string message = error_of("BEGIN {\n#pragma D attributes Stable/Stable/Common pid\n}");

  EXPECT_TRUE(message.starts_with("[D_PRAGMA_SCOPE] line 2: ")) << message;
}

TEST(Provider, DeclarationsGiveNoProbes) {
  const Outcome out =
      run("provider p { probe a(int, char *); probe b(string s) : (int); };\n"
          "#pragma D attributes Evolving/Evolving/Common provider p provider\n"
          "#pragma D attributes Private/Private/Unknown provider p args\n"
          "BEGIN { }");

  EXPECT_EQ(out.error, "");
  EXPECT_EQ(out.program.clauses.size(), 1U);
}

TEST(Stability, OfAClauseIsTheLeastOfWhatItUses) {
  const Outcome plain = run("BEGIN { trace(pid); }");
  const Outcome kernel = run("BEGIN { trace(curthread->pid); }");
  const Outcome own =
      run("#pragma D attributes Unstable/Evolving/ISA x\n"
          "int x;\nBEGIN { trace(x); }");

  ASSERT_EQ(plain.error + kernel.error + own.error, "");
  EXPECT_EQ(dif::to_string(plain.program.clauses[0].statement_attributes), "Stable/Stable/Common");
  EXPECT_EQ(dif::to_string(kernel.program.clauses[0].statement_attributes),
            "Private/Private/Unknown");
  EXPECT_EQ(dif::to_string(own.program.clauses[0].statement_attributes), "Unstable/Evolving/ISA");
}

TEST(Stability, BelowTheMinimumIsAnError) {
  CompileOptions options;
  options.attribute_minimum = dif::Attributes{};

  EXPECT_TRUE(error_of("BEGIN\n{ trace(curthread); }", options)
                  .starts_with("[D_ATTR_MIN] line 2: attributes for curthread "
                               "(Stable/Private/Common) are less than predefined minimum"));
  EXPECT_EQ(error_of("BEGIN { trace(pid); }", options), "");
}

CompileOptions of_version(Version version) {
  CompileOptions options;
  options.version = version;
  return options;
}

TEST(Version, HidesNamesThatCameLater) {
  EXPECT_TRUE(error_of("\nBEGIN { trace(ucaller); }", of_version({1, 0, 0}))
                  .starts_with("[D_IDENT_UNDEF] line 2: "));
  EXPECT_TRUE(error_of("BEGIN { trace(strstr(\"a\", \"b\")); }", of_version({1, 0, 0}))
                  .starts_with("[D_FUNC_UNDEF] line 1: "));
  EXPECT_EQ(error_of("BEGIN { trace(strstr(\"a\", \"b\")); }", of_version({1, 2, 0})), "");
}

TEST(Version, FreesNamesThatCameLater) {
  const Outcome out = run(
      "int ucaller; inline int sym = 4;\n"
      "BEGIN { ucaller = 1; ustackdepth = 2; strstr = 3; trace(ucaller + ustackdepth + strstr); "
      "trace(sym); }",
      of_version({1, 0, 0}));
  const Outcome bound =
      run("inline int late = 1;\n#pragma D binding \"1.5\" late\n"
          "BEGIN { late = 7; trace(late); }",
          of_version({1, 0, 0}));

  ASSERT_EQ(out.error + bound.error, "");
  EXPECT_EQ(out.values, (std::vector<Recorded>{std::int64_t{6}, std::int64_t{4}}));
  EXPECT_EQ(bound.values, std::vector<Recorded>{std::int64_t{7}});
}

TEST(Pragma, OfControlLinesIsAControlLine) {
  EXPECT_TRUE(error_of("#pragma D error too bad\nBEGIN { }")
                  .starts_with("[D_PRAGERR] line 1: #error: too bad"));
  EXPECT_EQ(error_of("#pragma D ident \"me\"\nBEGIN { }"), "");
  EXPECT_TRUE(error_of("#pragma D line 7\nBEGIN { = }").starts_with("[D_SYNTAX] line 7: "));
}

TEST(Pragma, OptionsAreSetByWhoKnowsThem) {
  CompileOptions options;
  std::string names;
  options.set_option = [&](std::string_view name, std::string_view value,
                           CompileOptions& set) -> Result<void> {
    names += name;
    if (name == "loud") return fail(ErrorCode::Usage, "Invalid option name");
    if (name == "version") set.version = parse_version(value);
    return {};
  };
  options.libraries = {{"lib.d", "#pragma D option loud\n"}};

  EXPECT_EQ(error_of("#pragma D option quiet\nBEGIN { }", options), "");
  EXPECT_EQ(names, "quiet") << "a library sets none, and each is set once";
  EXPECT_TRUE(error_of("#pragma D option version=1.0\nBEGIN { trace(ucaller); }", options)
                  .starts_with("[D_IDENT_UNDEF] line 2: "));
  EXPECT_TRUE(error_of("#pragma D option loud=9\nBEGIN { }", options)
                  .starts_with("[D_PRAGMA_OPTSET] line 1: failed to set option 'loud' to '9': "
                               "Invalid option name"));
}

}  // namespace
}  // namespace ringside::d
