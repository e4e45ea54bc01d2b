// QEMU's gdbstub in every state in which a ringside that is killed can leave it: the guest runs
// when its guardian has done its work. The machine has no kernel; its firmware runs.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "vmm/qemu/child_process.h"
#include "vmm/qemu/guardian.h"
#include "vmm/qemu/peer_socket.h"
#include "vmm/qemu/qmp.h"

namespace ringside::vmm {
namespace {

using namespace std::chrono_literals;
constexpr auto kTimeout = 120s;

std::pair<UniqueFd, UniqueFd> connected() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

class Qemu {
 public:
  Qemu() {
    auto [monitor, theirs] = connected();
    auto [gdb, stub] = connected();
    const char* const other = std::getenv("RINGSIDE_QEMU");
    const auto program = find_program(other != nullptr ? other : "qemu-system-x86_64");
    const int inherited[] = {theirs.get(), stub.get()};
    const auto device = [](std::string_view name, int fd) {
      return "socket,id=" + std::string(name) + ",fd=" + std::to_string(fd);
    };
    child_.emplace(*ChildProcess::spawn(
        program.value(),
        {"qemu", "-display", "none", "-nodefaults", "-accel", "tcg", "-m", "16", "-chardev",
         device("monitor", theirs.get()), "-mon", "chardev=monitor,mode=control", "-chardev",
         device("gdb", stub.get()), "-gdb", "chardev:gdb"},
        inherited, ChildLife::EndsWithParent));
    qmp_.emplace(std::move(monitor));
    EXPECT_TRUE(qmp_->handshake(kTimeout));
    gdb_ = std::move(gdb);
  }
  ~Qemu() {
    child_->kill();
    child_->reap();
  }

  int gdb() const { return gdb_.get(); }
  void ask(std::string_view command) { EXPECT_TRUE(qmp_->execute(command, kTimeout)) << command; }
  std::string status() {
    const auto answer = qmp_->execute("query-status", kTimeout);
    return answer ? json_text(*answer, "status") : answer.error().message;
  }
  /// Returns when the stub has read it.
  void say(std::string_view bytes) {
    ASSERT_EQ(send(gdb(), bytes.data(), bytes.size(), MSG_NOSIGNAL), ssize_t(bytes.size()));
    ASSERT_TRUE(await_taken(gdb(), 120'000));
    ask("query-status");  // served by the thread that has read it, after it
  }
  /// Somebody holds it and is killed; returns when his guardian has ended.
  void kill_master() {
    ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    const pid_t master = fork();
    if (master == 0) {
      auto guardian = Guardian::start(gdb(), Guardian::Peer::Debugger, Guardian::When::Held);
      guardian->hold();
      raise(SIGKILL);
      _exit(1);
    }
    int how = 0;
    ASSERT_EQ(waitpid(master, &how, 0), master);
    ASSERT_TRUE(WIFSIGNALED(how));
    ASSERT_GT(waitpid(-1, &how, 0), 0) << "the guardian, which is ours now";
    ASSERT_TRUE(WIFEXITED(how));
  }

 private:
  std::optional<ChildProcess> child_;
  std::optional<QmpClient> qmp_;
  UniqueFd gdb_;
};

struct State {
  std::string_view name;
  std::string_view cut_short;  // the packet that was not sent in full
};
constexpr State kStates[] = {{"between packets", ""},     {"in a packet", "$Hg"},
                             {"after an escape", "$Hg}"}, {"after a repeat", "$Hg*"},
                             {"before a sum", "$Hg1#"},   {"in a sum", "$Hg1#e"}};

/// `news`: of a stop, which nobody has answered.
void check(const State& state, bool runs, bool news) {
  SCOPED_TRACE(std::string(state.name) + (runs ? ", runs" : ", stopped") + (news ? ", news" : ""));
  Qemu qemu;
  ASSERT_NO_FATAL_FAILURE(qemu.say("$?#3f"));  // which stops a guest that runs, or is answered
  ASSERT_NO_FATAL_FAILURE(qemu.say("+"));
  qemu.ask("stop");
  ASSERT_NO_FATAL_FAILURE(qemu.say("+"));
  ASSERT_NO_FATAL_FAILURE(qemu.say(state.cut_short));
  if (news) {
    qemu.ask("cont");
    qemu.ask("stop");
  }
  if (runs) qemu.ask("cont");
  ASSERT_EQ(qemu.status(), runs ? "running" : "paused");

  ASSERT_NO_FATAL_FAILURE(qemu.kill_master());

  EXPECT_EQ(qemu.status(), "running");
}

TEST(LiveGuardian, LetsAGuestRunInEveryStateOfItsGdbstub) {
  for (const State& state : kStates) {
    for (const bool runs : {false, true}) {
      for (const bool news : {false, true}) check(state, runs, news);
    }
  }
}

TEST(LiveGuardian, LetsAGuestRunWhereNobodyHasSaidAWordToTheGdbstub) {
  for (const bool runs : {false, true}) {
    Qemu qemu;
    qemu.ask(runs ? "cont" : "stop");

    ASSERT_NO_FATAL_FAILURE(qemu.kill_master());

    EXPECT_EQ(qemu.status(), "running") << runs;
  }
}

}  // namespace
}  // namespace ringside::vmm
