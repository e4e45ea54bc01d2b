// The kernel's list of Unix sockets gives the inodes of the peers; /proc, whose they are.
#include "vmm/attach/monitor/socket_holder.h"

#include <fmt/format.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "vmm/attach/host/host_process.h"
#include "vmm/base/printable.h"
#include "vmm/base/unique_fd.h"

namespace ringside::vmm {
namespace {

constexpr unsigned kMostMessages = 1024;  // of the dump; each holds a hundred sockets

/// The sockets, by their inodes, that have to do with the file where somebody listens.
struct Sockets {
  std::vector<std::uint32_t> peers;  // of those that were accepted there
  std::vector<std::uint32_t> listeners;
};

/// Adds a socket of the kernel's list, if it was bound to the file `inode`, or accepted there.
void add_socket(const nlmsghdr* message, std::uint64_t inode, Sockets& sockets) {
  constexpr std::uint8_t kListens = 10;  // TCP_LISTEN, for Unix sockets, too
  if (message->nlmsg_len < NLMSG_LENGTH(sizeof(unix_diag_msg))) return;
  const auto* found = static_cast<const unix_diag_msg*>(NLMSG_DATA(message));
  std::uint32_t peer = 0;
  bool bound_there = false;
  auto left = static_cast<int>(message->nlmsg_len - NLMSG_LENGTH(sizeof *found));
  // SAFETY: the kernel's own layout (linux/unix_diag.h); RTA_OK keeps within the message.
  for (const auto* attribute = reinterpret_cast<const rtattr*>(found + 1); RTA_OK(attribute, left);
       attribute = RTA_NEXT(attribute, left)) {
    if (attribute->rta_type == UNIX_DIAG_VFS && RTA_PAYLOAD(attribute) >= sizeof(unix_diag_vfs)) {
      unix_diag_vfs file;
      std::memcpy(&file, RTA_DATA(attribute), sizeof file);
      bound_there = file.udiag_vfs_ino == inode;
    }
    if (attribute->rta_type == UNIX_DIAG_PEER && RTA_PAYLOAD(attribute) >= sizeof peer) {
      std::memcpy(&peer, RTA_DATA(attribute), sizeof peer);
    }
  }
  if (!bound_there) return;
  if (peer != 0) sockets.peers.push_back(peer);
  if (found->udiag_state == kListens) sockets.listeners.push_back(found->udiag_ino);
}

Sockets sockets_of_file(std::uint64_t inode) {
  Sockets sockets;
  const UniqueFd netlink(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  struct {
    nlmsghdr header;
    unix_diag_req request;
  } ask{};
  ask.header.nlmsg_len = sizeof ask;
  ask.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  ask.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  ask.request.sdiag_family = AF_UNIX;
  ask.request.udiag_states = ~0U;
  ask.request.udiag_show = UDIAG_SHOW_VFS | UDIAG_SHOW_PEER;
  if (!netlink || send(netlink.get(), &ask, sizeof ask, 0) < 0) return sockets;
  alignas(nlmsghdr) std::array<char, 32768> buffer;
  for (unsigned messages = 0; messages < kMostMessages; ++messages) {
    auto left = recv(netlink.get(), buffer.data(), buffer.size(), 0);
    if (left <= 0) return sockets;
    // SAFETY: as above; NLMSG_OK keeps within what was received.
    for (auto* message = reinterpret_cast<nlmsghdr*>(buffer.data()); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_type != SOCK_DIAG_BY_FAMILY) return sockets;  // the end, or a refusal
      add_socket(message, inode, sockets);
    }
  }
  return sockets;
}

bool has_one_of(const HostProcess& process, const std::vector<std::string>& sockets) {
  const auto descriptors = process.descriptors();  // of others they are not for us to see
  return descriptors && std::ranges::any_of(*descriptors, [&](const auto& descriptor) {
           return std::ranges::find(sockets, descriptor.target) != sockets.end();
         });
}

/// The first process but `not_this` that has one of the sockets.
std::optional<HostProcess> find_process_with(const std::vector<std::uint32_t>& inodes,
                                             pid_t not_this) {
  std::vector<std::string> sockets;
  sockets.reserve(inodes.size());
  for (const std::uint32_t inode : inodes) sockets.push_back(fmt::format("socket:[{}]", inode));
  if (sockets.empty()) return std::nullopt;
  for (const HostProcess& process : HostProcess::all()) {
    if (process.pid() != not_this && has_one_of(process, sockets)) return process;
  }
  return std::nullopt;
}

}  // namespace

std::optional<SocketHolder> find_socket_holder(std::uint64_t inode) {
  const auto found = find_process_with(sockets_of_file(inode).peers, getpid());
  if (!found) return std::nullopt;
  return SocketHolder{found->pid(), printable(found->comm())};
}

std::optional<pid_t> find_socket_listener(std::uint64_t inode) {
  const auto found = find_process_with(sockets_of_file(inode).listeners, 0);
  return found ? std::optional(found->pid()) : std::nullopt;
}

}  // namespace ringside::vmm
