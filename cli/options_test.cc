#include "cli/options.h"

#include <gtest/gtest.h>

namespace ringside::cli {
namespace {

using Kind = ProgramSource::Kind;
using Task = CommandLine::Task;

Result<CommandLine> parse(std::vector<std::string> words) {
  words.insert(words.begin(), "ringside");
  return parse_command_line(std::move(words));
}

TEST(CommandLine, KeepsProgramsInTheirOrder) {
  const auto line = parse(
      {"-n", "BEGIN", "-P", "syscall", "-s", "a.d", "-f", "vfs_read", "-m", "loop", "-i", "7"});

  ASSERT_TRUE(line) << line.error().message;
  ASSERT_EQ(line->programs.size(), 6u);
  EXPECT_EQ(line->programs[0].kind, Kind::Name);
  EXPECT_EQ(line->programs[1].kind, Kind::Provider);
  EXPECT_EQ(line->programs[2].kind, Kind::Script);
  EXPECT_EQ(line->programs[3].text, "vfs_read");
  EXPECT_EQ(line->programs[4].kind, Kind::Module);
  EXPECT_EQ(line->programs[5].kind, Kind::Id);
}

TEST(CommandLine, ScriptArgumentsMayStandAnywhere) {
  const auto line = parse({"-s", "a.d", "one", "-q", "two", "--", "-three"});

  ASSERT_TRUE(line);
  EXPECT_EQ(line->arguments, (std::vector<std::string>{"one", "two", "-three"}));
  EXPECT_TRUE(line->settings.quiet);
}

TEST(CommandLine, LettersCanBeJoined) {
  const auto line = parse({"-qwn", "BEGIN"});

  ASSERT_TRUE(line);
  EXPECT_TRUE(line->settings.quiet);
  EXPECT_TRUE(line->settings.destructive);
  EXPECT_EQ(line->programs[0].text, "BEGIN");
}

TEST(CommandLine, ReadsTheMachine) {
  const auto line =
      parse({"--kernel", "k", "--initrd=i", "--append", "quiet", "--cpus", "2", "--memory", "1g",
             "--machine", "qemu", "--keep", "-n", "BEGIN", "-c", "ls /"});

  ASSERT_TRUE(line) << line.error().message;
  const vmm::MachineConfig& config = line->machine.config;
  EXPECT_EQ(config.kernel, "k");
  EXPECT_EQ(config.initrd, "i");
  EXPECT_EQ(config.append, "quiet");
  EXPECT_EQ(config.vcpus, 2u);
  EXPECT_EQ(config.memory, std::uint64_t{1} << 30);
  EXPECT_EQ(config.choice, vmm::MachineChoice::Qemu);
  EXPECT_TRUE(config.keep);
  EXPECT_EQ(line->command, "ls /");
}

TEST(CommandLine, OneLineForEachMistake) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"-?"}, "illegal option -- ? (see --help)"},
      {{"-y"}, "illegal option -- y (see --help)"},
      {{"--nonesuch"}, "illegal option --nonesuch (see --help)"},
      {{"-n"}, "option -n requires an argument"},
      {{"-C", "-n", "BEGIN"}, "option -C is not supported yet"},
      {{"-x", "bufsize=4q", "-n", "BEGIN"},
       "option 'bufsize': '4q' is not a size (a number with k, m, g or t)"},
      {{"--cpus", "0", "-n", "BEGIN"}, "--cpus 0: a number from 1 to 64"},
      {{"--memory", "64m", "-n", "BEGIN"},
       "--memory 64m: a size of 256m or more, in whole megabytes"},
      {{"--memory", "300000001", "-n", "BEGIN"},
       "--memory 300000001: a size of 256m or more, in whole megabytes"},
      {{"--image", "a", "--kernel", "b", "-n", "BEGIN"}, "--image and --kernel exclude each other"},
      {{"-c", "ls", "-n", "BEGIN"},
       "-c runs a command in a guest: name one with --image or --kernel"},
      {{}, "no probes specified (see --help)"},
  };
  for (const auto& [words, message] : cases) {
    const auto line = parse(words);
    ASSERT_FALSE(line) << message;
    EXPECT_EQ(line.error().message, message);
  }
}

TEST(CommandLine, ListAndVersionNeedNoProgram) {
  EXPECT_EQ(parse({"-l"})->task, Task::List);
  EXPECT_EQ(parse({"-V"})->task, Task::Version);
  EXPECT_EQ(parse({"--help"})->task, Task::Help);
}

}  // namespace
}  // namespace ringside::cli
