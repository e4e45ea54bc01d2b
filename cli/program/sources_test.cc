#include "cli/program/sources.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace ringside::cli {
namespace {

using Kind = ProgramSource::Kind;

Result<Sources> load(const std::vector<ProgramSource>& programs) {
  return Sources::load(programs);
}

TEST(Sources, DescriptionsAreWidenedToNames) {
  const auto sources = load({{Kind::Name, "BEGIN"},
                             {Kind::Provider, "syscall"},
                             {Kind::Module, "fbt:loop/pid == 1/"},
                             {Kind::Function, "vfs_read, vmlinux:vfs_write { @ = count(); }"},
                             {Kind::Id, "7 { exit(0); }"},
                             {Kind::Name, "7, END"},
                             {Kind::Id, "END"}});

  ASSERT_TRUE(sources) << sources.error().message;
  EXPECT_EQ(sources->text(),
            "BEGIN {}\n"
            "syscall:::  {}\n"
            "fbt:loop:: /pid == 1/ {}\n"
            "::vfs_read:,:vmlinux:vfs_write: { @ = count(); }\n"
            "7 { exit(0); }\n"
            "7, END {}\n"
            "END {}\n");
}

TEST(Sources, TooManyFieldsAndIdsOfOtherThanProbesAreErrors) {
  EXPECT_EQ(load({{Kind::Provider, "a:b"}}).error().message,
            "invalid probe specifier a:b: invalid probe description \"a:b\": Overspecified probe "
            "description");
  EXPECT_EQ(load({{Kind::Module, "8"}}).error().message,
            "invalid probe specifier 8: probe identifier 8 not permitted when specifying modules");
  EXPECT_EQ(load({{Kind::Script, "/nonesuch.d"}}).error().message,
            "failed to open script /nonesuch.d: No such file or directory");
  EXPECT_EQ(load({{Kind::Script, "/tmp"}}).error().message,
            "failed to open script /tmp: Is a directory");
}

TEST(Sources, LabelsAreTheDescriptionOnly) {
  const auto sources = load({{Kind::Name, "syscall:::entry { @ = count(); }"}});

  EXPECT_EQ(sources->label(0), "description 'syscall:::entry '");
}

TEST(Sources, MessagesNameTheProgramAndItsOwnLine) {
  const auto sources = load({{Kind::Name, "BEGIN\n{\n}"}, {Kind::Name, "END\n{ x }"}});

  EXPECT_EQ(sources->program_of(3), 0u);
  EXPECT_EQ(sources->program_of(4), 1u);
  EXPECT_EQ(sources->explain("line 5: failed\n{ x }\n  ^ column 3"),
            "invalid probe specifier END\n{ x }: in action list: failed\n{ x }\n  ^ column 3");
  EXPECT_EQ(sources->explain("[D_SYNTAX] line 1: bad"),
            "invalid probe specifier BEGIN\n{\n}: [D_SYNTAX] line 1: bad");
  EXPECT_EQ(sources->explain("odd"), "invalid probe specifier BEGIN\n{\n}: odd");
}

TEST(Sources, ScriptsLoseTheirInterpreterLineButKeepTheirLines) {
  std::string path = (std::filesystem::temp_directory_path() / "sources_testXXXXXX").string();
  const int fd = mkstemp(path.data());
  ASSERT_GE(fd, 0);
  close(fd);
  std::ofstream(path) << "#!/usr/sbin/dtrace -s\nBEGIN { exit(0); }\n";
  const auto sources = load({{Kind::Script, path}});
  std::ofstream(path) << "\n #!/usr/sbin/dtrace -s\nBEGIN { }\n";
  const auto behind_blanks = load({{Kind::Script, path}});
  std::filesystem::remove(path);

  ASSERT_TRUE(sources && behind_blanks);
  EXPECT_EQ(sources->text(), "\nBEGIN { exit(0); }\n\n");
  EXPECT_EQ(behind_blanks->text(), "\n \nBEGIN { }\n\n");
  EXPECT_EQ(sources->label(0), "script '" + path + "'");
  EXPECT_EQ(sources->explain("line 2: bad"), "failed to compile script " + path + ": line 2: bad");
}

TEST(Sources, OptionsComeFromPragmasOutsideComments) {
  const auto sources =
      load({{Kind::Name,
             "#pragma D option zdefs\n #pragma  D option strsize=1k\n/*\n#pragma D option quiet\n"
             "*/\n#pragma D option\nBEGIN {}"}});
  Settings settings;

  sources->apply_options(settings);

  EXPECT_TRUE(settings.zero_matches);
  EXPECT_EQ(settings.engine.string_size, 1024u);
  EXPECT_FALSE(settings.quiet);
}

TEST(Sources, LineMarkersAreFollowedAndTakenAway) {
  const auto sources = load({{Kind::Name,
                              "# 1 \"<command line>\"\nBEGIN {\n# 7 \"/inc/a.h\" 1 3\nint a;\n"
                              "# 3 \"<command line>\" 2\ntrace(1);\n#line 20\n}"}});

  EXPECT_EQ(sources->text(), "\nBEGIN {\n\nint a;\n\ntrace(1);\n\n}\n");
  EXPECT_TRUE(sources->explain("line 2: x").ends_with(": line 1: x"));
  EXPECT_TRUE(sources->explain("line 4: x").ends_with(": \"/inc/a.h\", line 7: x"));
  EXPECT_TRUE(sources->explain("[D_T] line 6: x").ends_with(": [D_T] line 3: x"));
  EXPECT_TRUE(sources->explain("line 8: x").ends_with(": line 20: x"));
}

TEST(Sources, MalformedMarkersAreLeftToTheCompiler) {
  for (const char* line : {"# 1x", "#line", "# 1 file", "# 1 \"open", "#pragma D option quiet",
                           "# 99999999999 \"a\""}) {
    const auto sources = load({{Kind::Name, std::string(line) + "\nBEGIN {}"}});
    EXPECT_TRUE(sources->text().starts_with(line)) << line;
  }
}

TEST(Sources, ArePreprocessedWhenAsked) {
  PreprocessorSettings preprocessor;
  preprocessor.wanted = true;
  preprocessor.definitions = {"-DVALUE=42"};
  const auto sources = Sources::load(
      {{Kind::Name, "BEGIN\n{\n#ifdef __SUNW_D\ntrace(VALUE);\n#endif\n}"}}, preprocessor);

  ASSERT_TRUE(sources) << sources.error().message;
  EXPECT_NE(sources->text().find("trace(42);"), std::string::npos);
  const std::string before = sources->text().substr(0, sources->text().find("trace(42)"));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  EXPECT_NE(sources->explain(fmt::format("line {}: x", line)).find("}: line 4: x"),
            std::string::npos);
}

TEST(Sources, APreprocessorThatIsNotThereIsNamed) {
  PreprocessorSettings preprocessor;
  preprocessor.wanted = true;
  preprocessor.path = "/no/such/cpp";
  const auto sources = Sources::load({{Kind::Name, "BEGIN"}}, preprocessor);

  ASSERT_FALSE(sources);
  EXPECT_NE(sources.error().message.find("/no/such/cpp"), std::string::npos);
  EXPECT_NE(sources.error().message.find("install the package cpp"), std::string::npos);
}

TEST(Sources, CommentsAreBlankedButNotInStrings) {
  EXPECT_EQ(without_comments("a/*b\nc*/d \"/*x*/\\\"\" e/*open"),
            "a   \n   d \"/*x*/\\\"\" e      ");
}

}  // namespace
}  // namespace ringside::cli
