#include "vmm/qemu/guardian.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "vmm/qemu/peer_socket.h"

namespace ringside::vmm {
namespace {

constexpr std::string_view kGoOn = "+#00$c#63+$c#63";

struct Sockets {
  Sockets() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ours = UniqueFd(ends[0]);
    stub = UniqueFd(ends[1]);
  }
  UniqueFd ours, stub;
};

/// All that comes until the other side has closed; "hangs" when it does not.
std::string read_to_end(int fd) {
  std::string text;
  std::array<char, 256> chunk;
  for (;;) {
    pollfd entry{fd, POLLIN, 0};
    if (poll(&entry, 1, 10'000) != 1) return "hangs";
    const ssize_t got = read(fd, chunk.data(), chunk.size());
    if (got <= 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

TEST(Guardian, LetsTheGuestGoOnWhenItsMasterIsKilled) {
  Sockets sockets;
  const pid_t master = fork();
  if (master == 0) {
    sockets.stub.reset();
    auto guardian = Guardian::start(sockets.ours.get());
    raise(SIGKILL);
    _exit(guardian ? 0 : 1);
  }
  sockets.ours.reset();

  EXPECT_EQ(read_to_end(sockets.stub.get()), kGoOn);

  int status = 0;
  ASSERT_EQ(waitpid(master, &status, 0), master);
  EXPECT_TRUE(WIFSIGNALED(status));
}

/// QEMU's gdbstub, seen from outside; live_guardian_test.cc tries the real one.
class FakeGdbstub {
 public:
  enum class Part { Idle, Line, Escape, Repeat, Sum1, Sum2 };
  enum class News { OfEveryStop, OfInterrupts };  // before QEMU 8.1, and since
  FakeGdbstub(News news, bool runs, bool unanswered, Part part)
      : news_(news), runs_(runs), unanswered_(unanswered), part_(part) {
    if (part != Part::Idle) line_ = "Hg1";
  }
  bool runs() const { return runs_; }

  void take(char c) {
    if (unanswered_) {
      if (c == '+' || c == '$') unanswered_ = false;
      if (c != '$') return;
    }
    if (runs_) {
      runs_ = false;
      unanswered_ = news_ == News::OfEveryStop;
    } else {
      take_while_stopped(c);
    }
  }

 private:
  void take_while_stopped(char c) {
    const bool digit = std::isxdigit(static_cast<unsigned char>(c)) != 0;
    switch (part_) {
      case Part::Idle:
        if (c == '$') begin();
        return;
      case Part::Line:
        part_ = c == '#' ? Part::Sum1 : c == '}' ? Part::Escape : c == '*' ? Part::Repeat : part_;
        if (part_ == Part::Line) line_ += c;
        return;
      case Part::Escape: part_ = c == '#' ? Part::Sum1 : Part::Line; return;
      case Part::Repeat: part_ = Part::Line; return;
      case Part::Sum1:
        sum_ = c;
        part_ = digit ? Part::Sum2 : Part::Line;
        return;
      case Part::Sum2:
        part_ = digit ? Part::Idle : Part::Line;
        if (part_ == Part::Idle && line_ == "c" && sum_ == '6' && c == '3') runs_ = true;
    }
  }
  void begin() {
    line_.clear();
    part_ = Part::Line;
  }

  const News news_;
  bool runs_, unanswered_;
  Part part_;
  std::string line_;
  char sum_ = 0;
};

TEST(Guardian, LetsTheGuestGoOnInEveryStateOfTheGdbstub) {
  using News = FakeGdbstub::News;
  using Part = FakeGdbstub::Part;
  for (const News news : {News::OfEveryStop, News::OfInterrupts}) {
    for (const bool runs : {false, true}) {
      for (const bool unanswered : {false, true}) {
        for (const Part part :
             {Part::Idle, Part::Line, Part::Escape, Part::Repeat, Part::Sum1, Part::Sum2}) {
          FakeGdbstub stub(news, runs, unanswered, part);
          for (const char c : kGoOn) stub.take(c);
          EXPECT_TRUE(stub.runs()) << "runs " << runs << ", unanswered " << unanswered << ", part "
                                   << static_cast<int>(part);
        }
      }
    }
  }
}

/// Whether the mark still stands after a master was killed in a pause whose guest was let go, or
/// out of one.
bool mark_stays(bool held) {
  char mark[] = "/tmp/ringside-mark-XXXXXX";
  const UniqueFd file(mkstemp(mark));
  Sockets sockets;
  const pid_t master = fork();
  if (master == 0) {
    sockets.stub.reset();
    auto guardian =
        Guardian::start(sockets.ours.get(), Guardian::Peer::Debugger, Guardian::When::Held, mark);
    if (held) guardian->hold();
    raise(SIGKILL);
    _exit(guardian ? 0 : 1);
  }
  sockets.ours.reset();
  EXPECT_EQ(read_to_end(sockets.stub.get()), held ? kGoOn : "");
  EXPECT_EQ(waitpid(master, nullptr, 0), master);
  const bool stays = access(mark, F_OK) == 0;
  unlink(mark);
  return stays;
}

TEST(Guardian, RemovesTheMarkOfAPauseThatItHasEnded) {
  EXPECT_FALSE(mark_stays(true));
  EXPECT_TRUE(mark_stays(false)) << "it is of a pause that somebody else ends";
}

/// The words that a monitor's guardian says once its master, which gave it these orders, was
/// killed.
std::string said_after(const std::string& orders) {
  Sockets sockets;
  const pid_t master = fork();
  if (master == 0) {
    sockets.stub.reset();
    auto guardian =
        Guardian::start(sockets.ours.get(), Guardian::Peer::Monitor, Guardian::When::Held);
    for (const char order : orders) {
      if (order == 'h') guardian->hold();
      if (order == 'l') guardian->unhold();
    }
    raise(SIGKILL);
    _exit(guardian ? 0 : 1);
  }
  sockets.ours.reset();
  const std::string said = read_to_end(sockets.stub.get());
  EXPECT_EQ(waitpid(master, nullptr, 0), master);
  return said;
}

TEST(Guardian, LetsAMonitorsGuestGoOnlyFromAPauseOfOurs) {
  EXPECT_EQ(said_after(""), "");
  EXPECT_EQ(said_after("h"), "\xff\n{\"execute\": \"cont\"}\n");
  EXPECT_EQ(said_after("hl"), "");
  EXPECT_EQ(said_after("hlh"), "\xff\n{\"execute\": \"cont\"}\n");
}

/// The words that follow this order once a master has stopped, until it is let go on or ends; and
/// how it ended.
std::pair<std::string, int> said_while_stopped(char order) {
  Sockets sockets;
  const pid_t master = fork();
  if (master == 0) {
    sockets.stub.reset();
    auto guardian = Guardian::start(sockets.ours.get(), Guardian::Peer::Monitor,
                                    Guardian::When::Held, "", std::chrono::milliseconds(200));
    guardian->hold();
    if (order == 'l') guardian->unhold();
    raise(SIGSTOP);
    guardian->release();
    _exit(0);
  }
  sockets.ours.reset();
  int status = 0;
  EXPECT_EQ(waitpid(master, &status, WUNTRACED), master);
  EXPECT_TRUE(WIFSTOPPED(status));
  if (order == 'l') {
    pollfd entry{sockets.stub.get(), POLLIN, 0};
    EXPECT_EQ(poll(&entry, 1, 1000), 0) << "it touches no guest that runs";
    kill(master, SIGCONT);
  }
  const std::string said = read_to_end(sockets.stub.get());
  EXPECT_EQ(waitpid(master, &status, 0), master);
  return {said, status};
}

TEST(Guardian, EndsAMasterWhoIsStoppedInAPause) {
  const auto [said, status] = said_while_stopped('h');

  EXPECT_EQ(said, "\xff\n{\"execute\": \"cont\"}\n");
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST(Guardian, LeavesAMasterAloneWhoIsStoppedWhileTheGuestRuns) {
  const auto [said, status] = said_while_stopped('l');

  EXPECT_EQ(said, "");
  EXPECT_TRUE(WIFEXITED(status));
}

TEST(Guardian, GoesHomeWithoutAWordWhenReleased) {
  Sockets sockets;
  auto guardian = Guardian::start(sockets.ours.get());
  ASSERT_TRUE(guardian);
  sockets.ours.reset();

  guardian->release();
  guardian->release();

  EXPECT_EQ(read_to_end(sockets.stub.get()), "");
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "it was reaped";
}

TEST(Guardian, EndsWhenQemuHasGoneBefore) {
  Sockets sockets;
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const UniqueFd watch(pipe_ends[0]);
  UniqueFd held(pipe_ends[1]);
  sockets.stub.reset();
  const pid_t master = fork();
  if (master == 0) {
    auto guardian = Guardian::start(sockets.ours.get());
    raise(SIGKILL);
    _exit(guardian ? 0 : 1);
  }
  held.reset();

  EXPECT_EQ(read_to_end(watch.get()), "");
  waitpid(master, nullptr, 0);
}

TEST(AwaitTaken, TellsWhenThePeerHasReadEverything) {
  Sockets sockets;
  EXPECT_TRUE(await_taken(sockets.ours.get(), 0));
  ASSERT_EQ(write(sockets.ours.get(), "abc", 3), 3);
  EXPECT_FALSE(await_taken(sockets.ours.get(), 5));
  char bytes[3];
  ASSERT_EQ(read(sockets.stub.get(), bytes, 3), 3);
  EXPECT_TRUE(await_taken(sockets.ours.get(), 0));
}

TEST(AwaitTaken, DoesNotWaitForAPeerThatHasGone) {
  Sockets sockets;
  ASSERT_EQ(write(sockets.ours.get(), "abc", 3), 3);
  sockets.stub.reset();
  await_taken(sockets.ours.get(), 60'000);  // returns
}

}  // namespace
}  // namespace ringside::vmm
