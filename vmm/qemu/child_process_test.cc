#include "vmm/qemu/child_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

namespace ringside::vmm {
namespace {

bool ends(const ChildProcess& child) {
  pollfd entry{child.pidfd(), POLLIN, 0};
  return poll(&entry, 1, 600'000) == 1;
}

std::string errors_of(const ChildProcess& child) {
  std::array<char, 4096> text{};
  const ssize_t got = read(child.stderr_fd(), text.data(), text.size());
  return got > 0 ? std::string(text.data(), static_cast<std::size_t>(got)) : std::string();
}

/// Runs a shell command to its end and returns what it wrote to standard error.
std::string run_shell(const std::string& command, std::span<const int> inherited = {}) {
  auto child =
      ChildProcess::spawn("/bin/sh", {"sh", "-c", command}, inherited, ChildLife::EndsWithParent);
  if (!child) return child.error().message;
  EXPECT_TRUE(ends(*child));
  child->reap();
  return errors_of(*child);
}

TEST(FindProgram, LooksInThePathOnlyForBareNames) {
  EXPECT_TRUE(find_program("sh").has_value());
  EXPECT_EQ(find_program("/bin/sh"), "/bin/sh");
  EXPECT_FALSE(find_program("no-such-program-anywhere"));
  EXPECT_FALSE(find_program("/no/such/program"));
  EXPECT_FALSE(find_program("./no-such-program"));
}

TEST(ChildProcess, GivesItsStandardErrorAndItsEnd) {
  EXPECT_EQ(run_shell("echo words >&2; echo lost"), "words\n");
}

TEST(ChildProcess, PassesOnlyTheDescriptorsNamed) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const UniqueFd kept(pair[0]), closed(pair[1]);
  const UniqueFd careless(open("/dev/null", O_RDONLY));  // without O_CLOEXEC
  const int inherited[] = {kept.get()};

  const std::string open_ones = run_shell("ls /proc/$$/fd >&2", inherited);

  EXPECT_NE(open_ones.find(std::to_string(kept.get()) + "\n"), std::string::npos);
  EXPECT_EQ(open_ones.find(std::to_string(closed.get()) + "\n"), std::string::npos);
  EXPECT_EQ(open_ones.find(std::to_string(careless.get()) + "\n"), std::string::npos);
}

TEST(ChildProcess, HasASessionOfItsOwn) {
  const std::string session = run_shell("cut -d' ' -f6 /proc/$$/stat >&2");
  EXPECT_NE(std::stoi("0" + session), getsid(0));
  EXPECT_NE(std::stoi("0" + session), 0);
}

TEST(ChildProcess, IsKilledAndReapedMoreThanOnce) {
  auto child = ChildProcess::spawn("/bin/sleep", {"sleep", "1000"}, {}, ChildLife::OutlivesParent);
  ASSERT_TRUE(child);

  child->kill();
  child->reap();
  child->kill();
  child->reap();

  EXPECT_TRUE(ends(*child));
}

TEST(ChildProcess, RemembersHowItEnded) {
  const auto how = [](const char* command) {
    auto child =
        ChildProcess::spawn("/bin/sh", {"sh", "-c", command}, {}, ChildLife::EndsWithParent);
    EXPECT_TRUE(child);
    EXPECT_EQ(child->ended_how(), "");
    child->reap();
    child->reap();
    return child->ended_how();
  };
  EXPECT_EQ(how("exit 3"), "exit status 3");
  EXPECT_EQ(how("kill -ABRT $$"), "signal 6 (Aborted)");
}

TEST(ChildProcess, SaysWhyAProgramDoesNotStart) {
  const auto child = ChildProcess::spawn("/etc/passwd", {"x"}, {}, ChildLife::EndsWithParent);
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().message, "cannot start /etc/passwd: Permission denied");
}

}  // namespace
}  // namespace ringside::vmm
