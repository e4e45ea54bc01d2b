#include "cli/sources.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace ringside::cli {
namespace {

using Kind = ProgramSource::Kind;

std::optional<dif::ProbeDescription> lookup(dif::ProbeId id) {
  if (id.value != 7) return std::nullopt;
  return dif::ProbeDescription{"dtrace", "", "", "BEGIN"};
}

Result<Sources> load(const std::vector<ProgramSource>& programs) {
  return Sources::load(programs, lookup);
}

TEST(Sources, DescriptionsAreWidenedToNames) {
  const auto sources = load({{Kind::Name, "BEGIN"},
                             {Kind::Provider, "syscall"},
                             {Kind::Module, "fbt:loop/pid == 1/"},
                             {Kind::Function, "vfs_read, vmlinux:vfs_write { @ = count(); }"},
                             {Kind::Id, "7 { exit(0); }"}});

  ASSERT_TRUE(sources) << sources.error().message;
  EXPECT_EQ(sources->text(),
            "BEGIN {}\n"
            "syscall:::  {}\n"
            "fbt:loop:: /pid == 1/ {}\n"
            "::vfs_read:,:vmlinux:vfs_write: { @ = count(); }\n"
            "dtrace:::BEGIN { exit(0); }\n");
}

TEST(Sources, TooManyFieldsAndUnknownIdsAreErrors) {
  EXPECT_EQ(load({{Kind::Provider, "a:b"}}).error().message,
            "invalid probe specifier a:b: too many or no fields");
  EXPECT_EQ(load({{Kind::Id, "8"}}).error().message, "there is no probe with id '8'");
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
  EXPECT_EQ(sources->explain("line 5: failed\n{ x }\n  ^"),
            "invalid probe specifier END\n{ x }: line 2: failed\n{ x }\n  ^");
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
  std::filesystem::remove(path);

  ASSERT_TRUE(sources);
  EXPECT_EQ(sources->text(), "\nBEGIN { exit(0); }\n\n");
  EXPECT_EQ(sources->label(0), "script '" + path + "'");
  EXPECT_EQ(sources->explain("line 2: bad"), "failed to compile script " + path + ": line 2: bad");
}

TEST(Sources, EarlyOptionsComeFromPragmasOutsideComments) {
  const auto sources =
      load({{Kind::Name,
             "#pragma D option zdefs\n #pragma  D option strsize=1k\n/*\n#pragma D option quiet\n"
             "*/\n#pragma D option nonesuch\nBEGIN {}"}});
  Settings settings;

  sources->apply_early_options(settings);

  EXPECT_TRUE(settings.zero_matches);
  EXPECT_EQ(settings.engine.string_size, 1024u);
  EXPECT_FALSE(settings.quiet);
}

TEST(Sources, CommentsAreBlankedButNotInStrings) {
  EXPECT_EQ(without_comments("a/*b\nc*/d \"/*x*/\\\"\" e/*open"),
            "a   \n   d \"/*x*/\\\"\" e      ");
}

}  // namespace
}  // namespace ringside::cli
