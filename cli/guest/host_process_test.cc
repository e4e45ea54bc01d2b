#include "cli/guest/host_process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace ringside::cli {
namespace {

using Words = std::vector<std::string>;

void wait_for_end(HostProcesses& processes) {
  pollfd event{processes.live_fds().at(0), POLLIN, 0};
  ASSERT_EQ(::poll(&event, 1, 10'000), 1);
}

TEST(Command, IsSplitAtBlanksAndKeptTogetherByQuotes) {
  EXPECT_EQ(split_command("  ls  -l\t/ "), (Words{"ls", "-l", "/"}));
  EXPECT_EQ(split_command("sh -c 'a \"b\"  c' x\\ y \"d'e\" ''"),
            (Words{"sh", "-c", "a \"b\"  c", "x y", "d'e", ""}));
}

TEST(Command, OpenQuotesAndNothingAreRefused) {
  EXPECT_FALSE(split_command("echo 'a"));
  EXPECT_FALSE(split_command("  "));
  EXPECT_FALSE(split_command("''"));
}

TEST(HostProcess, IsHeldUntilItMayGo) {
  HostProcesses processes;
  ASSERT_TRUE(processes.create("true", {}));

  EXPECT_TRUE(processes.take_ended().empty());
  EXPECT_TRUE(processes.any_live());
  processes.go();
  wait_for_end(processes);

  EXPECT_EQ(processes.take_ended(),
            (Words{"pid " + std::to_string(processes.target()) + " has exited"}));
  EXPECT_FALSE(processes.any_live());
  EXPECT_TRUE(processes.live_fds().empty());
}

TEST(HostProcess, HasOurEnvironmentWithTheChangesOfTheSettings) {
  ::setenv("RINGSIDE_TEST_GONE", "1", 1);
  ::setenv("RINGSIDE_TEST_KEPT", "kept", 1);
  Settings settings;
  settings.environment = {{"RINGSIDE_TEST_SET", "old"}, {"RINGSIDE_TEST_SET", "a b"}};
  settings.removed_environment = {"RINGSIDE_TEST_GONE"};
  const std::string file = ::testing::TempDir() + "environment." + std::to_string(::getpid());
  HostProcesses processes;
  ASSERT_TRUE(processes.create(
      "sh -c 'echo \"$RINGSIDE_TEST_KEPT,$RINGSIDE_TEST_SET,$RINGSIDE_TEST_GONE\" >" + file + "'",
      settings));
  processes.go();
  wait_for_end(processes);

  std::string line;
  std::getline(std::ifstream(file), line);
  ::unlink(file.c_str());
  EXPECT_EQ(line, "kept,a b,");
}

TEST(HostProcess, ThatCannotBeStartedSaysWhy) {
  HostProcesses processes;
  const auto done = processes.create("/no/such/program", {});

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "failed to execute /no/such/program: No such file or directory");
  EXPECT_TRUE(processes.empty());
}

TEST(HostProcess, EndsWithTheTraceThatStartedIt) {
  std::int64_t pid = 0;
  {
    HostProcesses processes;
    ASSERT_TRUE(processes.create("sleep 1000", {}));
    pid = processes.target();
    processes.go();
  }
  HostProcesses again;
  EXPECT_FALSE(again.grab(pid));
}

TEST(HostProcess, SeesTheEnvironmentThatWasAskedFor) {
  Settings settings;
  settings.environment.emplace_back("RINGSIDE_A", "b c");
  settings.removed_environment.emplace_back("HOME");
  HostProcesses processes;
  ASSERT_TRUE(processes.create(
      "sh -c 'test \"$RINGSIDE_A\" = \"b c\" -a -z \"${HOME+x}\" || kill -9 $$'", settings));
  processes.go();
  wait_for_end(processes);

  EXPECT_EQ(processes.take_ended(),
            (Words{"pid " + std::to_string(processes.target()) + " has exited"}));
}

TEST(HostProcess, TheFirstOneIsTheTarget) {
  HostProcesses processes;
  ASSERT_TRUE(processes.grab(getpid()));
  ASSERT_TRUE(processes.create("true", {}));

  EXPECT_EQ(processes.target(), getpid());
  EXPECT_EQ(processes.live_fds().size(), 2u);
}

}  // namespace
}  // namespace ringside::cli
