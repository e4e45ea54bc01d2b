#include "vmm/base/process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <vector>

namespace ringside {
namespace {

using Words = std::vector<std::string>;

int nothing() {
  return 0;
}

TEST(StartedProgram, RunsWithItsWords) {
  const auto started = start_program("/bin/sh", Words{"sh", "-c", "exit $0", "7"}, nothing);

  ASSERT_EQ(started.problem, 0);
  const auto status = await_child(started.child);
  ASSERT_TRUE(status && WIFEXITED(*status));
  EXPECT_EQ(WEXITSTATUS(*status), 7);
}

TEST(StartedProgram, IsSearchedInThePath) {
  const auto started = start_program("true", Words{"true"}, nothing);

  ASSERT_EQ(started.problem, 0);
  EXPECT_EQ(await_child(started.child), 0);
}

TEST(StartedProgram, ThatIsNotThereLeavesItsErrnoAndNoChild) {
  const auto started = start_program("/no/such/program", Words{"program"}, nothing);

  EXPECT_EQ(started.problem, ENOENT);
  EXPECT_EQ(started.child, -1);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(StartedProgram, DoesNotRunIfItsPreparationFails) {
  const auto started = start_program("/bin/sh", Words{"sh", "-c", "exit 0"}, [] { return EPERM; });

  EXPECT_EQ(started.problem, EPERM);
  EXPECT_EQ(started.child, -1);
}

TEST(StartedProgram, IsPreparedInTheChild) {
  std::array<int, 2> ends;
  ASSERT_EQ(pipe(ends.data()), 0);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const auto started = start_program("/bin/sh", Words{"sh", "-c", "echo words"}, [&] {
    return dup2(writer.get(), STDOUT_FILENO) == STDOUT_FILENO ? 0 : errno;
  });
  writer.reset();

  ASSERT_EQ(started.problem, 0);
  std::array<char, 16> text;
  EXPECT_EQ(read(reader.get(), text.data(), text.size()), 6);
  EXPECT_EQ(std::string(text.data(), 6), "words\n");
  EXPECT_EQ(await_child(started.child), 0);
}

TEST(Pidfd, TellsTheEndOfAProcessThatWasSignalled) {
  const auto started = start_program("sleep", Words{"sleep", "1000"}, nothing);
  ASSERT_EQ(started.problem, 0);
  const UniqueFd process = open_pidfd(started.child);
  ASSERT_TRUE(process);

  signal_pidfd(process.get(), SIGKILL);

  pollfd entry{process.get(), POLLIN, 0};
  EXPECT_EQ(poll(&entry, 1, 600'000), 1);
  const auto status = await_child(started.child);
  ASSERT_TRUE(status && WIFSIGNALED(*status));
  EXPECT_EQ(WTERMSIG(*status), SIGKILL);
}

}  // namespace
}  // namespace ringside
