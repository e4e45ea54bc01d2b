// Deadlines over poll(2); see the header.
#include "vmm/qemu/peer_socket.h"

#include <fmt/format.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace ringside::vmm {
namespace {

constexpr int kShortestPoll = 1, kLongestPoll = 100;  // milliseconds

}  // namespace

Result<void> PeerSocket::wait_for(short events, Deadline deadline) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd entry{fd_.get(), events, 0};
    const int ready = poll(&entry, 1, static_cast<int>(std::clamp<long>(left.count(), 0, 1 << 30)));
    if (ready > 0) return {};
    if (ready == 0) return fail(ErrorCode::MachineGone, name_ + " did not answer in time");
    if (errno != EINTR) {
      return fail(ErrorCode::Io, fmt::format("waiting for {}: {}", name_, std::strerror(errno)));
    }
  }
}

Result<void> PeerSocket::send(std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      TRY(wait_for(POLLOUT, deadline));
    } else if (errno != EINTR) {
      return fail(ErrorCode::MachineGone, fmt::format("{}: {}", name_, std::strerror(errno)));
    }
  }
  return {};
}

Result<void> PeerSocket::send_descriptor(int descriptor, std::string_view bytes,
                                         Deadline deadline) {
  // SAFETY: read only; iovec has no form for that.
  iovec first{const_cast<char*>(bytes.data()), std::min<std::size_t>(bytes.size(), 1)};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof descriptor)> control{};
  msghdr message{};
  message.msg_iov = &first;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  while (sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) != 1) {
    if (errno == EAGAIN) {
      TRY(wait_for(POLLOUT, deadline));
    } else if (errno != EINTR) {
      return fail(ErrorCode::MachineGone, fmt::format("{}: {}", name_, std::strerror(errno)));
    }
  }
  return send(bytes.substr(1), deadline);
}

Result<bool> PeerSocket::receive_now(std::string& into) {
  std::array<char, 16384> chunk;
  for (;;) {
    const ssize_t got = recv(fd_.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got > 0) {
      into.append(chunk.data(), static_cast<std::size_t>(got));
      return true;
    }
    if (got == 0) return fail(ErrorCode::MachineGone, name_ + " closed the connection");
    if (errno == EAGAIN) return false;
    if (errno != EINTR) {
      return fail(ErrorCode::MachineGone, fmt::format("{}: {}", name_, std::strerror(errno)));
    }
  }
}

Result<void> PeerSocket::receive(std::string& into, Deadline deadline) {
  while (std::chrono::steady_clock::now() < deadline) {  // a peer that never pauses ends here too
    const bool got = TRY(receive_now(into));
    if (got) return {};
    TRY(wait_for(POLLIN, deadline));
  }
  return fail(ErrorCode::MachineGone, name_ + " did not answer in time");
}

bool await_taken(int socket, int milliseconds) {
  int interval = kShortestPoll;
  for (int waited = 0;; waited += interval) {
    interval = std::clamp(waited / 8, kShortestPoll, kLongestPoll);
    int pending = 0;
    if (ioctl(socket, SIOCOUTQ, &pending) != 0) return false;
    if (pending == 0) return true;
    // No event tells that a peer has read; its hang-up is one.
    pollfd entry{socket, 0, 0};
    if (waited >= milliseconds || poll(&entry, 1, interval) != 0) return false;
  }
}

}  // namespace ringside::vmm
