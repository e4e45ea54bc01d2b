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

/// The message about a place in the sources' text, without its tag.
std::string explain(const Sources& sources, int line, int column = 1,
                    const std::string& text = "x") {
  const std::string all = sources.text();
  d::Diagnostic diagnostic{"D_T", text, {line, column, line, 0}, false, {}, {}};
  diagnostic.source_line = d::line_of(all, line);
  const std::string message = sources.explain(diagnostic, false);
  return message.substr(0, message.find(d::excerpt(diagnostic)));
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
  EXPECT_EQ(load({{Kind::Provider, "a:b:c"}}).error().message,
            "invalid probe description \"a:b:c\": Overspecified probe description (in 'a:b:c')");
  EXPECT_EQ(load({{Kind::Module, "8 { a long program }"}}).error().message,
            "probe identifier 8 not permitted when specifying modules (in '8')");
  EXPECT_EQ(Sources::load({{Kind::Provider, "a:b:c"}}, {}, true).error().message,
            "invalid probe specifier a:b:c: [D_PDESC_INVAL] invalid probe description \"a:b:c\": "
            "Overspecified probe description");
  EXPECT_EQ(load({{Kind::Script, "/nonesuch.d"}}).error().message,
            "failed to open script /nonesuch.d: No such file or directory");
  EXPECT_EQ(load({{Kind::Script, "/tmp"}}).error().message,
            "failed to open script /tmp: Is a directory");
}

TEST(Sources, OneFieldMoreIsTheMachine) {
  const auto sources = load({{Kind::Provider, "web:syscall"},
                             {Kind::Module, "web*:fbt:loop"},
                             {Kind::Function, "web:::vfs_read"},
                             {Kind::Name, ":syscall::read:entry"}});

  ASSERT_TRUE(sources) << sources.error().message;
  EXPECT_EQ(sources->text(),
            "web:syscall:::  {}\n"
            "web*:fbt:loop::  {}\n"
            "web:::vfs_read:  {}\n"
            ":syscall::read:entry {}\n");
}

TEST(Sources, LabelsAreTheDescriptionOnly) {
  const auto sources = load({{Kind::Name, "syscall:::entry { @ = count(); }"}});

  EXPECT_EQ(sources->label(0), "description 'syscall:::entry '");
}

TEST(Sources, MessagesNameTheProgramAndItsOwnLine) {
  const auto sources = load({{Kind::Name, "BEGIN\n{\n}"}, {Kind::Name, "END\n{ x }"}});

  EXPECT_EQ(sources->program_of(3), 0u);
  EXPECT_EQ(sources->program_of(4), 1u);
  EXPECT_EQ(explain(*sources, 5, 3, "failed"), "failed (in action list of 'END')");
  EXPECT_EQ(explain(*sources, 1, 1, "bad"), "bad (in 'BEGIN')");
  EXPECT_EQ(sources->place(5), "");
}

TEST(Sources, MessagesHaveTagLineAndCaretOfTheirDiagnostic) {
  const auto sources = load({{Kind::Name, "BEGIN { trace(x); }"}});
  d::Diagnostic diagnostic{"D_IDENT_UNDEF", "no \x1b[2J", {1, 15, 1, 0}, false, {}, {}};
  diagnostic.source_line = "BEGIN { trace(x); }";

  EXPECT_EQ(sources->explain(diagnostic, true),
            "invalid probe specifier BEGIN { trace(x); }: [D_IDENT_UNDEF] in action list: no "
            "\\033[2J\nBEGIN { trace(x); }\n              ^ column 15");
  EXPECT_EQ(
      sources->explain(diagnostic, false),
      "no \\033[2J (in action list of 'BEGIN')\nBEGIN { trace(x); }\n              ^ column 15");
}

TEST(Sources, ALongDescriptionIsCut) {
  const std::string description = "syscall::" + std::string(80, 'x') + ":entry";
  const auto sources = load({{Kind::Name, description + " /pid == 1/ { trace(1); }"}});

  EXPECT_EQ(explain(*sources, 1, 100, "bad"),
            "bad (in predicate of '" + description.substr(0, 60) + "...')");
}

TEST(Sources, TheParsersOwnComplaintsHaveNoPlaceInADescription) {
  const auto sources = load({{Kind::Name, "BEGIN { = }"}});
  d::Diagnostic diagnostic{"D_SYNTAX", "syntax error near \"=\"", {1, 9, 1, 0}, true, {}, {}};

  EXPECT_TRUE(
      sources->explain(diagnostic, false).starts_with("syntax error near \"=\" (in 'BEGIN')\n"));
}

TEST(Sources, MessagesAboutLibrariesNameThem) {
  const auto sources = load({{Kind::Name, "BEGIN"}, {Kind::Name, "END"}});
  d::Diagnostic diagnostic{"D_T", "bad", {2, 1, 2, 1}, false, "io.d", "inline"};

  EXPECT_EQ(sources->explain(diagnostic, false), "bad (io.d:2)\ninline\n^ column 1");
  EXPECT_EQ(sources->explain(diagnostic, true),
            "invalid probe specifier BEGIN: [D_T] \"io.d\", line 2: bad\ninline\n^ column 1");
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
  EXPECT_EQ(explain(*sources, 2, 1, "bad"), "bad (" + path + ":2)");
  EXPECT_EQ(sources->place(2), path + ":2");
}

TEST(Sources, LineMarkersOfScriptsAreFollowed) {
  std::string path = (std::filesystem::temp_directory_path() / "sources_testXXXXXX").string();
  const int fd = mkstemp(path.data());
  ASSERT_GE(fd, 0);
  close(fd);
  std::ofstream(path) << "# 1 \"" << path << "\"\nBEGIN {\n# 7 \"/inc/a.h\" 1 3\nint a;\n# 3 \""
                      << path << "\" 2\ntrace(1);\n#line 20\n}";
  const auto sources = load({{Kind::Script, path}});
  std::filesystem::remove(path);

  ASSERT_TRUE(sources);
  EXPECT_EQ(explain(*sources, 2), "x (" + path + ":1)");
  EXPECT_EQ(explain(*sources, 4), "x (/inc/a.h:7)");
  EXPECT_EQ(explain(*sources, 6), "x (" + path + ":3)");
  EXPECT_EQ(explain(*sources, 8), "x (" + path + ":20)");
  EXPECT_EQ(sources->place(4), "/inc/a.h:7");
  EXPECT_EQ(sources->place(8), path + ":20");
}

TEST(Sources, LineMarkersAreFollowedAndTakenAway) {
  const auto sources = load({{Kind::Name,
                              "# 1 \"<command line>\"\nBEGIN {\n# 7 \"/inc/a.h\" 1 3\nint a;\n"
                              "# 3 \"<command line>\" 2\ntrace(1);\n#line 20\n}"}});

  EXPECT_EQ(sources->text(), "\nBEGIN {\n\nint a;\n\ntrace(1);\n\n}\n");
  EXPECT_EQ(explain(*sources, 4), "x (/inc/a.h:7)");
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
