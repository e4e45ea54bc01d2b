// The process that listens at a Unix socket, and those that are connected to it, from the host's
// kernel (sock_diag(7)). It does not connect, because that would take a place in the socket's
// queue. Both may have changed by the time the caller reads them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace ringside::vmm {

struct SocketHolder {
  pid_t pid = 0;
  std::string program;  // its name, printable
};

/// Another process that is connected to the socket which lies in the file `inode`; of several,
/// one. Empty when there is none that we may see.
std::optional<SocketHolder> find_socket_holder(std::uint64_t inode);
/// The process that listens there; empty when there is none that we may see.
std::optional<pid_t> find_socket_listener(std::uint64_t inode);

}  // namespace ringside::vmm
