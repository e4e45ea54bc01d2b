// For tests: a QEMU's monitor, played in this process. The guest's RAM is memory of this process,
// so the host's kernel names this process as the QEMU. A test can change the answers, to play a
// hostile monitor. Not linked into the product.
// Threads: say() and send_event() before or while it serves.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "vmm/base/unique_fd.h"

namespace ringside::vmm {

class FakeMonitor {
 public:
  static constexpr std::size_t kLow = 16 << 20, kHigh = 8 << 20;
  static constexpr std::uint64_t kHighBase = 0x1'0000'0000;

  /// With RAM of `fd`, from its start, or private RAM.
  explicit FakeMonitor(int fd = -1) {
    char folder[] = "/tmp/ringside-monitor-XXXXXX";
    EXPECT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    void* mapped = mmap(nullptr, kLow + kHigh, PROT_READ | PROT_WRITE,
                        fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
    EXPECT_NE(mapped, MAP_FAILED);
    ram_ = static_cast<std::byte*>(mapped);
    answer_as_a_qemu();
    listen_there();
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeMonitor() {
    stop_.store(true);
    thread_.join();
    munmap(ram_, kLow + kHigh);
    std::filesystem::remove_all(folder_);
  }
  FakeMonitor(const FakeMonitor&) = delete;
  FakeMonitor& operator=(const FakeMonitor&) = delete;

  std::string path() const { return folder_ + "/qmp"; }
  std::byte* ram() { return ram_; }

  using Answer = std::function<nlohmann::json(const nlohmann::json& arguments)>;
  /// Sets the value that it returns for a command, or for a line of the human monitor ("hmp
  /// gpa2hva").
  void say(const std::string& command, nlohmann::json value) {
    answer(command, [value = std::move(value)](const auto&) { return value; });
  }
  void answer(const std::string& command, Answer answer) {
    const std::lock_guard lock(mutex_);
    answers_[command] = std::move(answer);
  }
  /// In front of the next answer.
  void send_event_next(const std::string& name, nlohmann::json data = nlohmann::json::object()) {
    const std::lock_guard lock(mutex_);
    next_ += event_line(name, std::move(data));
  }
  /// After the next answer, and with it.
  void send_event_behind_next(const std::string& name) {
    const std::lock_guard lock(mutex_);
    behind_next_ += event_line(name, nlohmann::json::object());
  }
  void send_event_now(const std::string& name, nlohmann::json data = nlohmann::json::object()) {
    const std::lock_guard lock(mutex_);
    send_line(event_line(name, std::move(data)));
  }
  /// The commands that changed something: stop, cont, and lines of the human monitor.
  std::vector<std::string> taken() {
    const std::lock_guard lock(mutex_);
    return taken_;
  }
  /// QEMU's end of the connection to its gdbstub that came last; none when none has come.
  UniqueFd take_debugger() {
    const std::lock_guard lock(mutex_);
    return std::move(debugger_);
  }
  void set_running(bool running) {
    const std::lock_guard lock(mutex_);
    running_ = running;
  }
  bool running() {
    const std::lock_guard lock(mutex_);
    return running_;
  }
  static std::string tree() {
    return "FlatView #0\r\n AS \"I/O\", root: io\r\n Root memory region: io\r\n"
           "  0000000000000000-0000000000000007 (prio 0, i/o): dma-chan\r\n\r\n"
           "FlatView #1\r\n AS \"memory\", root: system\r\n AS \"cpu-memory-0\", root: system\r\n"
           " Root memory region: system\r\n"
           "  0000000000000000-00000000000bffff (prio 0, ram): pc.ram KVM\r\n"
           "  00000000000c0000-00000000000fffff (prio 0, rom): pc.ram @00000000000c0000 KVM\r\n"
           "  0000000000100000-0000000000ffffff (prio 0, ram): pc.ram @0000000000100000 KVM\r\n"
           "  00000000fd000000-00000000fdffffff (prio 1, ram): vga.vram KVM\r\n"
           "  00000000fffc0000-00000000ffffffff (prio 0, rom): pc.bios KVM\r\n"
           "  0000000100000000-00000001007fffff (prio 0, ram): pc.ram @0000000001000000 KVM\r\n";
  }

 private:
  static std::string event_line(const std::string& name, nlohmann::json data) {
    return nlohmann::json{{"event", name}, {"data", std::move(data)}}.dump() + "\r\n";
  }

  void answer_as_a_qemu() {
    say("qmp_capabilities", nlohmann::json::object());
    say("query-target", {{"arch", "x86_64"}});
    say("query-kvm", {{"enabled", true}, {"present", true}});
    say("query-name", {{"name", "web1"}});
    say("query-cpus-fast", nlohmann::json::array({{{"cpu-index", 0}, {"thread-id", getpid()}}}));
    say("query-chardev", nlohmann::json::array());
    say("query-memdev", nlohmann::json::array({{{"id", "pc.ram"}, {"size", kLow + kHigh}}}));
    for (const char* command : {"getfd", "chardev-add", "chardev-remove"}) {
      say(command, nlohmann::json::object());
    }
    say("hmp gdbserver", "");
    say("hmp info mtree", "address-space: memory\r\n");
    say("hmp info mtree -f", tree());
    answers_["query-status"] = [this](const auto&) {
      return nlohmann::json{{"status", running_ ? "running" : "paused"}, {"running", running_}};
    };
    answers_["stop"] = [this](const auto&) { return switch_to(false, "STOP"); };
    answers_["cont"] = [this](const auto&) { return switch_to(true, "RESUME"); };
    answers_["hmp gpa2hva"] = [this](const nlohmann::json& line) {
      const std::uint64_t at = std::stoull(line.get<std::string>().substr(8), nullptr, 16);
      const std::uint64_t offset = at < kHighBase ? at : at - kHighBase + kLow;
      std::array<char, 100> text;
      std::snprintf(text.data(), text.size(), "Host virtual address for 0x%zx (pc.ram) is %p\r\n",
                    std::size_t{at}, static_cast<void*>(ram_ + offset));
      return nlohmann::json(text.data());
    };
  }

  nlohmann::json switch_to(bool running, const char* event) {
    if (running_ != running) next_ += event_line(event, nlohmann::json::object());
    running_ = running;
    return nlohmann::json::object();
  }

  void listen_there() {
    listener_ = UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path().c_str(), sizeof address.sun_path - 1);
    // SAFETY: the sockets' own idiom.
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_.get(), 4), 0);
  }

  /// One client after another, as QEMU.
  void serve() {
    while (!stop_.load()) {
      pollfd entry{listener_.get(), POLLIN, 0};
      if (poll(&entry, 1, 10) <= 0) continue;
      {
        const std::lock_guard lock(mutex_);
        client_ = UniqueFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        send_line("{\"QMP\": {\"version\": {}, \"capabilities\": []}}\r\n");
      }
      serve_client();
      const std::lock_guard lock(mutex_);
      client_.reset();
    }
  }

  void serve_client() {
    std::string pending;
    while (!stop_.load()) {
      pollfd entry{client_.get(), POLLIN, 0};
      if (poll(&entry, 1, 10) <= 0) continue;
      std::array<char, 4096> chunk;
      const ssize_t got = receive(chunk);
      if (got <= 0) return;
      pending.append(chunk.data(), static_cast<std::size_t>(got));
      for (std::size_t end; (end = pending.find('\n')) != std::string::npos;) {
        take(nlohmann::json::parse(pending.substr(0, end), nullptr, false));
        pending.erase(0, end + 1);
      }
    }
  }

  /// Also a descriptor, which is the debugger's from then on.
  ssize_t receive(std::span<char> chunk) {
    iovec into{chunk.data(), chunk.size()};
    int fd = -1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fd)> control{};
    msghdr message{};
    message.msg_iov = &into;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = recvmsg(client_.get(), &message, MSG_CMSG_CLOEXEC);
    const cmsghdr* const header = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
    if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
      std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
      const std::lock_guard lock(mutex_);
      debugger_ = UniqueFd(fd);
    }
    return got;
  }

  void take(const nlohmann::json& request) {
    if (!request.is_object()) return;
    const std::lock_guard lock(mutex_);
    std::string command = request.value("execute", "");
    nlohmann::json arguments = request.value("arguments", nlohmann::json::object());
    if (command == "stop" || command == "cont") taken_.push_back(command);
    if (command == "human-monitor-command") {
      arguments = arguments.value("command-line", "");
      const auto line = arguments.get<std::string>();
      command = "hmp " + (line.starts_with("info") ? line : line.substr(0, line.find(' ')));
    }
    const auto found = answers_.find(command);
    nlohmann::json reply{{"id", request.value("id", 0)}};
    if (found == answers_.end()) {
      reply["error"] = {{"class", "CommandNotFound"}, {"desc", "no such command"}};
    } else {
      reply["return"] = found->second(arguments);
    }
    send_line(std::exchange(next_, {}) + reply.dump() + "\r\n" + std::exchange(behind_next_, {}));
  }

  void send_line(const std::string& line) {
    if (client_) (void)!::send(client_.get(), line.data(), line.size(), MSG_NOSIGNAL);
  }

  std::string folder_;
  std::byte* ram_ = nullptr;
  UniqueFd listener_, client_;
  std::mutex mutex_;  // all below
  UniqueFd debugger_;
  std::map<std::string, Answer> answers_;
  std::vector<std::string> taken_;
  std::string next_, behind_next_;
  bool running_ = true;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// Whether a message has the part in it.
inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace ringside::vmm
