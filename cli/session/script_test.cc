// Options that a program sets reach the compiler and the session through one table.
#include "cli/session/script.h"

#include <gtest/gtest.h>

#include "dif/d/testing/program_runner.h"

namespace ringside::cli {
namespace {

class PragmaOptions : public testing::Test {
 protected:
  /// The compiler's complaint, without its excerpt; empty when there is none.
  std::string compile(const std::string& source) {
    d::FakeKernel kernel;
    const auto compiled = d::compile(source, compile_options(line_, "test", {}, {}), kernel);
    if (!compiled) return std::string(compiled.error().tag) + ": " + compiled.error().text;
    options_ = compiled->program.options;
    desugared_ = compiled->desugared;
    return {};
  }

  CommandLine line_;
  std::map<std::string, std::string> options_;
  std::string desugared_;
};

TEST_F(PragmaOptions, SetWhatTheSessionRunsWith) {
  ASSERT_EQ(compile("#pragma D option quiet\n#pragma D option bufsize=64k\n"
                    "#pragma D option switchrate=10hz\nBEGIN { }"),
            "");

  EXPECT_TRUE(line_.settings.quiet);
  EXPECT_EQ(line_.settings.engine.buffer_size, 64u << 10);
  EXPECT_EQ(line_.settings.switch_interval, std::chrono::milliseconds(100));
  EXPECT_EQ(options_, (std::map<std::string, std::string>{
                          {"quiet", ""}, {"bufsize", "64k"}, {"switchrate", "10hz"}}));
}

TEST_F(PragmaOptions, SetWhatTheCompilerGoesBy) {
  EXPECT_EQ(
      compile("#pragma D option version=1.0\nBEGIN { trace(ucaller); }"),
      "D_IDENT_UNDEF: failed to resolve ucaller: Unknown variable name; did you mean caller?");
  line_ = {};
  EXPECT_EQ(compile("nosuch:::probe { }").substr(0, 12), "D_PDESC_ZERO");
  EXPECT_EQ(compile("#pragma D option zdefs\nnosuch:::probe { }"), "");
  EXPECT_EQ(compile("#pragma D option defaultargs\nBEGIN { trace($1); }"), "");
  EXPECT_EQ(compile("#pragma D option empty\n"), "");
  EXPECT_EQ(compile("#pragma D option amin=Stable/Stable/Common\nBEGIN { trace(curthread); }")
                .substr(0, 10),
            "D_ATTR_MIN");
}

TEST_F(PragmaOptions, ListTheClausesWhereTheyAskForTheTree) {
  ASSERT_EQ(compile("#pragma D option tree=8\nBEGIN { if (pid) { trace(1); } }"), "");

  EXPECT_NE(desugared_.find("BEGIN"), std::string::npos);
}

TEST_F(PragmaOptions, ThatCannotBeSaySoAsTheTableDoes) {
  EXPECT_EQ(compile("#pragma D option amin=Nice\nBEGIN { }"),
            "D_PRAGMA_OPTSET: failed to set option 'amin' to 'Nice': Invalid value for specified "
            "option: attributes such as Evolving/Evolving/Common");
  EXPECT_EQ(compile("#pragma D option version=99.0\nBEGIN { }"),
            "D_PRAGMA_OPTSET: failed to set option 'version' to '99.0': Requested version is not "
            "supported by compiler");
  for (const char* early : {"nolibs", "libdir=/tmp", "bootargs=quiet", "cpppath=/bin/cpp"}) {
    EXPECT_TRUE(compile("#pragma D option " + std::string(early) + "\nBEGIN { }")
                    .ends_with("Option cannot be used from within a D program"))
        << early;
  }
}

TEST_F(PragmaOptions, ThatAreRefusedLeaveTheSettingsAlone) {
  EXPECT_NE(compile("#pragma D option quiet\n#pragma D option bufsize=x\nBEGIN { }"), "");

  EXPECT_TRUE(line_.settings.quiet);
  EXPECT_EQ(line_.settings.engine.buffer_size, Settings().engine.buffer_size);
}

}  // namespace
}  // namespace ringside::cli
