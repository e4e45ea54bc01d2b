#include "vmm/attach/monitor/monitor_socket.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "vmm/attach/monitor/fake_monitor_for_tests.h"

namespace ringside::vmm {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTimeout(20'000), kShort(50);

std::string trouble(const std::string& path, milliseconds timeout = kTimeout) {
  const auto monitor = MonitorSocket::connect(path, timeout);
  return monitor ? "" : monitor.error().message;
}

TEST(MonitorSocket, KnowsTheProcessAndTakesEventsBesideAnswers) {
  FakeMonitor qemu;
  auto monitor = MonitorSocket::connect(qemu.path());
  ASSERT_TRUE(monitor) << monitor.error().message;
  EXPECT_EQ((*monitor)->pid(), getpid());

  qemu.send_event_next("STOP");
  ASSERT_TRUE((*monitor)->execute("query-name"));

  pollfd ready{(*monitor)->event_fd(), POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 20'000), 1);
  const auto events = (*monitor)->take_events();
  ASSERT_TRUE(events);
  ASSERT_EQ(events->size(), 1U);
  EXPECT_EQ(events->front().name, "STOP");
  EXPECT_EQ(poll(&ready, 1, 0), 0) << "nothing is left";
}

TEST(MonitorSocket, TellsOfAnEventThatCameWithAnAnswer) {
  FakeMonitor qemu;
  auto monitor = MonitorSocket::connect(qemu.path());
  ASSERT_TRUE(monitor) << monitor.error().message;

  qemu.send_event_behind_next("RESUME");
  ASSERT_TRUE((*monitor)->execute("query-name"));

  pollfd ready{(*monitor)->event_fd(), POLLIN, 0};
  ASSERT_EQ(poll(&ready, 1, 20'000), 1) << "nothing more comes that would wake us";
  const auto events = (*monitor)->take_events();
  ASSERT_TRUE(events);
  ASSERT_EQ(events->size(), 1U);
  EXPECT_EQ(events->front().name, "RESUME");
}

TEST(MonitorSocket, AsksOnWhatWasSilent) {
  FakeMonitor qemu;
  auto monitor = MonitorSocket::connect(qemu.path(), kShort);
  for (int tries = 0; !monitor && tries < 100; ++tries) {
    monitor = MonitorSocket::connect(qemu.path(), kShort);
  }
  ASSERT_TRUE(monitor) << monitor.error().message;
  std::promise<void> wakes;
  qemu.answer("query-name", [woken = wakes.get_future().share()](const auto&) {
    woken.wait();
    return nlohmann::json::object();
  });

  const auto unanswered = (*monitor)->execute("query-name");
  const auto sent = (*monitor)->execute("cont");
  wakes.set_value();
  auto answered = (*monitor)->execute("query-status");
  for (int tries = 0; !answered && tries < 100; ++tries) {
    answered = (*monitor)->execute("query-status");
  }

  ASSERT_FALSE(unanswered);
  EXPECT_EQ(unanswered.error().code, ErrorCode::MachineGone);
  EXPECT_FALSE(sent);
  ASSERT_TRUE(answered) << answered.error().message;
  EXPECT_EQ(qemu.taken(), std::vector<std::string>{"cont"});
}

TEST(MonitorSocket, HasNoLimitOnThePathsLength) {
  FakeMonitor qemu;
  const auto folder = std::filesystem::path(qemu.path()).parent_path();
  const auto deep = folder / std::string(200, 'x');
  std::filesystem::create_directory(deep);
  std::filesystem::create_symlink(qemu.path(), deep / "qmp");

  EXPECT_EQ(trouble((deep / "qmp").string()), "");
}

TEST(MonitorSocket, SaysWhatIsInTheWay) {
  std::string folder_name = "/tmp/ringside-socket-XXXXXX";
  ASSERT_NE(mkdtemp(folder_name.data()), nullptr);
  const std::filesystem::path folder = folder_name;
  std::ofstream(folder / "file") << "no socket\n";
  {
    const UniqueFd ended(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s/ended", folder_name.c_str());
    ASSERT_EQ(bind(ended.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }

  EXPECT_TRUE(has(trouble(folder / "none"), "No such file"));
  EXPECT_TRUE(has(trouble(folder / "file"), "is no socket"));
  EXPECT_TRUE(has(trouble(folder / "ended"), "its QEMU has ended"));
  std::filesystem::remove_all(folder);
}

TEST(MonitorSocket, SaysWhoElseIsConnected) {
  FakeMonitor qemu;
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const pid_t child = fork();
  if (child == 0) {
    // Another client, which stays: only calls that are safe after fork().
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, qemu.path().c_str(), sizeof address.sun_path - 1);
    (void)!connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address);
    (void)!read(fd, &address, 1);  // greeted
    (void)!write(told[1], "", 1);
    pause();
    _exit(0);
  }
  char word;
  ASSERT_EQ(read(told[0], &word, 1), 1);

  const std::string said = trouble(qemu.path());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);

  EXPECT_TRUE(has(said, "one client at a time, and process " + std::to_string(child) + " ("))
      << said;
  close(told[0]);
  close(told[1]);
}

/// Something else that listens, and says `words` to whoever comes.
class Listener {
 public:
  explicit Listener(const std::string& words) {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    fd_ = UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path().c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(fd_.get(), 1), 0);
    thread_ = std::thread([this, words] {
      const UniqueFd client(accept(fd_.get(), nullptr, nullptr));
      for (std::string_view left = words; !left.empty();) {
        const ssize_t sent = send(client.get(), left.data(), left.size(), MSG_NOSIGNAL);
        if (sent <= 0) return;
        left.remove_prefix(static_cast<std::size_t>(sent));
      }
      char byte;
      while (read(client.get(), &byte, 1) > 0) {
      }
    });
  }
  ~Listener() {
    thread_.join();
    std::filesystem::remove_all(folder_);
  }
  std::string path() const { return folder_ + "/socket"; }

 private:
  std::string folder_ = "/tmp/ringside-listener-XXXXXX";
  UniqueFd fd_;
  std::thread thread_;
};

TEST(MonitorSocket, RefusesWhatIsNoQmp) {
  EXPECT_TRUE(has(trouble(Listener("QEMU 7.2.0 monitor - type 'help'\r\n(qemu) ").path()),
                  "is no QMP socket"));
  EXPECT_TRUE(has(trouble(Listener("{\"hello\": 1}\r\n").path()), "is no QMP socket"));
  EXPECT_TRUE(has(trouble(Listener(std::string(9 << 20, '{')).path()), "without an end"));
  EXPECT_TRUE(has(trouble(Listener("").path(), kShort), "says nothing"));
  // Which of the two it is depends on how soon the greeting comes.
  const std::string silent = trouble(Listener("{\"QMP\": {}}\r\n").path(), kShort);
  EXPECT_TRUE(has(silent, "did not answer in time") || has(silent, "says nothing")) << silent;
}

}  // namespace
}  // namespace ringside::vmm
