// The name is that of an abstract Unix socket (unix(7)): no file is left behind, no folder is
// needed that all users may write to, and a connection tells which process listens.
#include "vmm/attach/host/attach_lock.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include "vmm/attach/host/host_process.h"
#include "vmm/base/printable.h"

namespace ringside::vmm {

namespace {

struct LockName {
  sockaddr_un address{};
  socklen_t size = 0;

  const sockaddr* get() const {
    // SAFETY: the sockets' own idiom.
    return reinterpret_cast<const sockaddr*>(&address);
  }
};

/// With the process's start, so that a later process of that number has a name of its own.
LockName name_of(pid_t pid, std::uint64_t start) {
  const std::string text = fmt::format("ringside/{}/{}", pid, start);
  LockName name;
  name.address.sun_family = AF_UNIX;
  std::memcpy(name.address.sun_path + 1, text.data(), text.size());
  name.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return name;
}

std::optional<pid_t> holder_of(const LockName& name) {
  const UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  ucred peer{};
  socklen_t size = sizeof peer;
  if (!fd || connect(fd.get(), name.get(), name.size) != 0 ||
      getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid <= 0) {
    return std::nullopt;
  }
  return peer.pid;
}

}  // namespace

Result<AttachLock> AttachLock::take(pid_t pid) {
  const auto start = HostProcess(pid).start_time();
  if (!start) return fail(ErrorCode::NotFound, fmt::format("there is no process {}", pid));
  const LockName name = name_of(pid, *start);
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd && bind(fd.get(), name.get(), name.size) == 0 && listen(fd.get(), SOMAXCONN) == 0) {
    return AttachLock(std::move(fd));
  }
  if (errno != EADDRINUSE) {
    return fail(ErrorCode::Io, fmt::format("cannot make a socket: {}", std::strerror(errno)));
  }
  const auto holder = holder_of(name);
  return fail(ErrorCode::Limit,
              fmt::format("process {} is already attached to by {}: one at a time", pid,
                          holder ? fmt::format("process {} ({})", *holder,
                                               printable(HostProcess(*holder).comm()))
                                 : std::string("another process")));
}

std::optional<pid_t> AttachLock::holder(pid_t pid) {
  const auto start = HostProcess(pid).start_time();
  return start ? holder_of(name_of(pid, *start)) : std::nullopt;
}

}  // namespace ringside::vmm
