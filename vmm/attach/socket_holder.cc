// The kernel's list of Unix sockets gives the inodes of the peers; /proc, whose they are.
#include "vmm/attach/socket_holder.h"

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

#include "vmm/attach/host_process.h"
#include "vmm/base/printable.h"
#include "vmm/base/unique_fd.h"

namespace ringside::vmm {
namespace {

constexpr unsigned kMostMessages = 1024;  // of the dump; each holds a hundred sockets

/// The inode of the peer, of a socket that was accepted where the file `inode` is bound; 0:
/// another.
std::uint32_t peer_of_accepted(const nlmsghdr* message, std::uint64_t inode) {
  if (message->nlmsg_len < NLMSG_LENGTH(sizeof(unix_diag_msg))) return 0;
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
  return bound_there ? peer : 0;
}

std::vector<std::uint32_t> peers_of_file(std::uint64_t inode) {
  std::vector<std::uint32_t> peers;
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
  if (!netlink || send(netlink.get(), &ask, sizeof ask, 0) < 0) return peers;
  alignas(nlmsghdr) std::array<char, 32768> buffer;
  for (unsigned messages = 0; messages < kMostMessages; ++messages) {
    auto left = recv(netlink.get(), buffer.data(), buffer.size(), 0);
    if (left <= 0) return peers;
    // SAFETY: as above; NLMSG_OK keeps within what was received.
    for (auto* message = reinterpret_cast<nlmsghdr*>(buffer.data()); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_type != SOCK_DIAG_BY_FAMILY) return peers;  // the end, or a refusal
      const std::uint32_t peer = peer_of_accepted(message, inode);
      if (peer != 0) peers.push_back(peer);
    }
  }
  return peers;
}

bool has_one_of(const HostProcess& process, const std::vector<std::string>& sockets) {
  const auto descriptors = process.descriptors();  // of others they are not for us to see
  return descriptors && std::ranges::any_of(*descriptors, [&](const auto& descriptor) {
           return std::ranges::find(sockets, descriptor.target) != sockets.end();
         });
}

}  // namespace

std::optional<SocketHolder> find_socket_holder(std::uint64_t inode) {
  std::vector<std::string> sockets;
  for (const std::uint32_t peer : peers_of_file(inode)) {
    sockets.push_back(fmt::format("socket:[{}]", peer));
  }
  if (sockets.empty()) return std::nullopt;
  for (const HostProcess& process : HostProcess::all()) {
    if (process.pid() != getpid() && has_one_of(process, sockets)) {
      return SocketHolder{process.pid(), printable(process.comm())};
    }
  }
  return std::nullopt;
}

}  // namespace ringside::vmm
