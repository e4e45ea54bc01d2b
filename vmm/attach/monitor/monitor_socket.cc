// Connecting with one line for each thing that can be in the way; commands under a lock.
#include "vmm/attach/monitor/monitor_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "vmm/attach/host/attach_target.h"
#include "vmm/attach/host/host_process.h"
#include "vmm/attach/monitor/socket_holder.h"
#include "vmm/base/printable.h"
#include "vmm/base/unique_fd.h"

namespace ringside::vmm {
namespace {

constexpr std::chrono::milliseconds kAfterSilence(1000);

struct SocketFile {
  UniqueFd file;  // O_PATH
  std::uint64_t inode = 0;
};

Result<SocketFile> open_socket_file(const std::string& path) {
  SocketFile found{UniqueFd(open(path.c_str(), O_PATH | O_CLOEXEC))};
  struct stat info {};
  if (!found.file || fstat(found.file.get(), &info) != 0) {
    return fail(errno == ENOENT ? ErrorCode::NotFound : ErrorCode::Io,
                fmt::format("there is no QMP socket {}: {}; QEMU makes one by {}", path,
                            std::strerror(errno), kQmpOption));
  }
  if (!S_ISSOCK(info.st_mode)) {
    return fail(
        ErrorCode::Invalid,
        fmt::format("{} is no socket: name the one that QEMU makes by {}", path, kQmpOption));
  }
  found.inode = info.st_ino;
  return found;
}

Error connect_error(const std::string& path, const SocketFile& socket) {
  switch (errno) {
    case ECONNREFUSED:
      return {ErrorCode::NotFound, fmt::format("nobody listens at {}: its QEMU has ended", path)};
    case EACCES: {
      struct stat info {};
      (void)fstat(socket.file.get(), &info);
      return {ErrorCode::Io,
              fmt::format("{} may not be connected to: be root, or user {}", path, info.st_uid)};
    }
    case EAGAIN:
      return {ErrorCode::Io,
              fmt::format("{} has one client at a time, and others wait already", path)};
    default:
      return {ErrorCode::Io,
              fmt::format("{} cannot be connected to: {}", path, std::strerror(errno))};
  }
}

/// By the descriptor, because a path may be longer than a socket's address.
Result<UniqueFd> connect_to(const std::string& path, const SocketFile& file) {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d", file.file.get());
  // SAFETY: the sockets' own idiom.
  if (!fd || ::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return Unexpected<Error>(connect_error(path, file));
  }
  return fd;
}

Result<void> check_no_client(const std::string& path, const SocketFile& file) {
  const auto holder = find_socket_holder(file.inode);
  if (!holder) return {};
  const bool is_libvirts = holder->program == "libvirtd" || holder->program == "virtqemud";
  return fail(ErrorCode::Io,
              fmt::format("{} has one client at a time, and process {} ({}) is connected: end "
                          "it, or start QEMU with a second one, {}{}",
                          path, holder->pid, holder->program, kQmpOption,
                          is_libvirts ? "; or name the libvirt domain" : ""));
}

/// Until something arrives. QEMU greets a client once the one before it has gone.
Result<void> await_greeting(const std::string& path, const SocketFile& file, int fd, pid_t listener,
                            std::chrono::milliseconds timeout) {
  const auto step = std::min(timeout, std::chrono::milliseconds(1000));
  for (auto waited = std::chrono::milliseconds(0); waited < timeout; waited += step) {
    pollfd entry{fd, POLLIN, 0};
    TRY(HostProcess(listener).check_not_stopped());
    if (poll(&entry, 1, static_cast<int>(step.count())) > 0) return {};
    TRY(check_no_client(path, file));
  }
  return fail(ErrorCode::Io,
              fmt::format("{} says nothing: it is no QMP socket, has another client, "
                          "or its QEMU hangs",
                          path));
}

Result<pid_t> listener_of(const std::string& path, int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid <= 0) {
    return fail(ErrorCode::Unsupported,
                fmt::format("the process that listens at {} is not to be seen from here: run "
                            "ringside in its PID namespace, or its parent's",
                            path));
  }
  return peer.pid;
}

}  // namespace

Result<std::unique_ptr<MonitorSocket>> MonitorSocket::connect(const std::string& path,
                                                              std::chrono::milliseconds timeout) {
  const SocketFile file = TRY(open_socket_file(path));
  UniqueFd fd = TRY(connect_to(path, file));
  const pid_t pid = TRY(listener_of(path, fd.get()));
  TRY(await_greeting(path, file, fd.get(), pid, timeout));
  std::unique_ptr<MonitorSocket> monitor(new MonitorSocket(std::move(fd), pid, timeout));
  const auto greeted = monitor->qmp_.handshake(timeout);
  if (!greeted) {
    return fail(greeted.error().code, fmt::format("{} is no QMP socket, which QEMU makes by {}: {}",
                                                  path, kQmpOption, greeted.error().message));
  }
  TRY(monitor->make_events());
  return monitor;
}

Result<void> MonitorSocket::check_free(const std::string& path) {
  return check_no_client(path, TRY(open_socket_file(path)));
}

std::optional<pid_t> MonitorSocket::find_listener(const std::string& path) {
  const auto file = open_socket_file(path);
  return file ? find_socket_listener(file->inode) : std::nullopt;
}

Result<void> MonitorSocket::make_events() {
  ready_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  arrived_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_event readable{EPOLLIN, {}};
  if (!ready_ || !arrived_ || epoll_ctl(ready_.get(), EPOLL_CTL_ADD, qmp_.fd(), &readable) != 0 ||
      epoll_ctl(ready_.get(), EPOLL_CTL_ADD, arrived_.get(), &readable) != 0) {
    return fail(ErrorCode::Io, fmt::format("cannot watch QEMU: {}", std::strerror(errno)));
  }
  return {};
}

void MonitorSocket::collect_events() {
  // An event that came with an answer is in no socket any more, so nobody would be woken for it.
  // That QEMU has closed take_events() finds again.
  (void)qmp_.take_in();
  while (auto event = qmp_.next_event()) add_event(events_, std::move(*event));
  if (!events_.empty()) raise_event(arrived_);
}

/// Notes how the monitor answered a command; returns the answer.
template <typename T>
Result<T> MonitorSocket::answered(Result<T> answer) {
  silent_ = !answer && answer.error().code == ErrorCode::MachineGone;
  collect_events();
  return answer;
}

/// A QEMU that hangs would otherwise hold up each of our many steps to the end. It is asked on, and
/// does all of it when it wakes.
std::chrono::milliseconds MonitorSocket::timeout() const {
  return silent_ ? std::min(timeout_, kAfterSilence) : timeout_;
}

Result<nlohmann::json> MonitorSocket::execute(std::string_view command,
                                              const nlohmann::json& arguments) {
  const std::lock_guard lock(mutex_);
  return answered(qmp_.execute(command, arguments, timeout()));
}

Result<void> MonitorSocket::pass_descriptor(std::string_view name, int descriptor) {
  const std::lock_guard lock(mutex_);
  return answered(qmp_.pass_descriptor(name, descriptor, timeout()));
}

Result<std::vector<QmpEvent>> MonitorSocket::take_events() {
  const std::lock_guard lock(mutex_);
  const auto taken = qmp_.take_in();
  collect_events();
  std::uint64_t count;
  (void)!read(arrived_.get(), &count, sizeof count);  // fails when nothing had come
  if (!taken && events_.empty()) return Unexpected<Error>(taken.error());
  return std::exchange(events_, {});
}

}  // namespace ringside::vmm
