// The sandbox: what its threads do goes on working; each kind of thing they must not do ends the
// process. Forbidden calls are made in a child, which dies of them.
#include "vmm/kvm/host/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include "vmm/base/unique_fd.h"

namespace ringside::vmm::kvm {
namespace {

/// `work` on a thread in the sandbox, to its end.
void run_inside(std::function<void()> work) {
  auto thread = start_sandboxed({"test"}, std::move(work));
  ASSERT_TRUE(thread) << thread.error().message;
  thread->join();
}

/// The number that a line of /proc/.../status has after `name`.
std::string status_of(const std::string& task, const std::string& name) {
  std::ifstream status(task + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":")) return line.substr(line.find_last_of(" \t") + 1);
  }
  return {};
}

TEST(Sandbox, LetsAThreadDoItsWork) {
  const UniqueFd file(memfd_create("disk", 0)), event(eventfd(0, 0));
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const UniqueFd left(ends[0]), right(ends[1]);
  std::string failed;
  const auto expect = [&failed](bool good, const char* what) {
    if (!good) failed += what + std::string(" ");
  };

  run_inside([&] {
    char bytes[8] = "written";
    const iovec vector{bytes, sizeof bytes};
    expect(pwritev(file.get(), &vector, 1, 512) == 8, "pwritev");
    expect(preadv(file.get(), &vector, 1, 512) == 8, "preadv");
    expect(fdatasync(file.get()) == 0, "fdatasync");
    expect(eventfd_write(event.get(), 1) == 0, "eventfd");
    pollfd polled{event.get(), POLLIN, 0};
    expect(poll(&polled, 1, 1000) == 1, "poll");
    expect(send(left.get(), bytes, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1, "send");
    expect(read(right.get(), bytes, 1) == 1, "read");
    std::vector<char> large(4 << 20);  // by mmap
    large.resize(large.size() * 2);
    timespec now;
    expect(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now) == 0, "clock_gettime");
    std::mutex mutex;
    std::condition_variable never;
    std::unique_lock lock(mutex);
    expect(!never.wait_for(lock, std::chrono::milliseconds(1), [] { return false; }), "wait");
    std::fprintf(stderr, "%s", "");
  });

  EXPECT_EQ(failed, "");
}

TEST(Sandbox, AThreadInsideHasNoPrivileges) {
  std::string task;
  std::atomic<bool> known{false}, done{false};
  auto thread = start_sandboxed({"the name"}, [&] {
    task = fmt::format("/proc/self/task/{}", syscall(SYS_gettid));
    known = true;
    known.notify_one();
    done.wait(false);
  });
  ASSERT_TRUE(thread) << thread.error().message;
  known.wait(false);

  EXPECT_EQ(status_of(task, "CapEff"), "0000000000000000");
  EXPECT_EQ(status_of(task, "CapPrm"), "0000000000000000");
  EXPECT_EQ(status_of(task, "NoNewPrivs"), "1");
  EXPECT_EQ(status_of(task, "Name"), "name");  // the last word of it
  EXPECT_EQ(status_of("/proc/thread-self", "NoNewPrivs"), "0") << "the session's own threads do -w";

  done = true;
  done.notify_one();
  thread->join();
}

TEST(Sandbox, NoFileCanBeOpened) {
  int fd = 0, error = 0;

  run_inside([&] {
    fd = open("/dev/null", O_RDONLY);
    error = errno;
  });

  EXPECT_EQ(fd, -1);
  EXPECT_EQ(error, EACCES);
}

TEST(Sandbox, MallocGivesMemoryBack) {
  // In an arena of the thread, whose heaps shrink: glibc then asks /proc for the overcommit mode.
  run_inside([] {
    for (int round = 0; round < 3; ++round) {
      std::vector<std::string> pieces;
      for (int i = 0; i < 100; ++i) pieces.emplace_back(10'000, 'x');
    }
  });
}

TEST(Sandbox, TheSignalThatWasAskedForArrives) {
  static std::atomic<int> arrived{0};
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) { arrived = 1; };
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);

  auto thread = start_sandboxed({"test", SIGUSR1}, [] {
    while (arrived == 0) std::this_thread::yield();
  });
  ASSERT_TRUE(thread) << thread.error().message;
  pthread_kill(thread->native_handle(), SIGUSR1);
  thread->join();

  EXPECT_EQ(arrived, 1);
  sigaction(SIGUSR1, &before, nullptr);
}

struct Forbidden {
  const char* name;
  long number;
  void (*work)();
};

class SandboxForbids : public testing::TestWithParam<Forbidden> {};

TEST_P(SandboxForbids, AndSaysWhichCallItWas) {
  testing::FLAGS_gtest_death_test_style = "fast";

  EXPECT_EXIT(run_inside(GetParam().work), testing::KilledBySignal(SIGSYS),
              fmt::format("made system call {}, which", GetParam().number));
}

INSTANTIATE_TEST_SUITE_P(
    Calls, SandboxForbids,
    testing::Values(Forbidden{"Exec", SYS_execve, [] { execl("/bin/true", "true", nullptr); }},
                    Forbidden{"Socket", SYS_socket, [] { (void)!socket(AF_UNIX, SOCK_STREAM, 0); }},
                    Forbidden{"Thread", SYS_clone, [] { syscall(SYS_clone, 0, nullptr); }},
                    Forbidden{"Ptrace", SYS_ptrace, [] { ptrace(PTRACE_ATTACH, 1, 0, 0); }},
                    Forbidden{"OtherIoctl", SYS_ioctl, [] { (void)isatty(0); }},
                    Forbidden{"Code", SYS_mmap,
                              [] {
                                (void)!mmap(nullptr, 4096, PROT_READ | PROT_EXEC,
                                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                              }},
                    Forbidden{"SignalElsewhere", SYS_tgkill, [] { syscall(SYS_tgkill, 1, 1, 0); }}),
    [](const auto& parameter) { return parameter.param.name; });

}  // namespace
}  // namespace ringside::vmm::kvm
