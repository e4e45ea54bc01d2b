// For tests: the other end of a socket pair, played by a function in a thread of its own.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "vmm/base/unique_fd.h"

namespace ringside::vmm {

class FakePeer {
 public:
  /// Plays `part`; its end closes when the function returns.
  explicit FakePeer(std::function<void(FakePeer&)> part) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    client_ = UniqueFd(ends[0]);
    own_ = UniqueFd(ends[1]);
    thread_ = std::thread([this, part = std::move(part)] {
      part(*this);
      own_.reset();
    });
  }
  ~FakePeer() {
    client_.reset();
    if (thread_.joinable()) thread_.join();
  }
  FakePeer(const FakePeer&) = delete;
  FakePeer& operator=(const FakePeer&) = delete;

  /// The end that the code under test gets.
  UniqueFd client() { return std::move(client_); }
  /// Waits until the part has returned; all that it did is seen then.
  void await_end() { thread_.join(); }

  // For the part:

  /// False when the code under test has given up.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(own_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  /// The next bytes up to and with `end`; what there was when the other side closed.
  std::string receive_until(std::string_view end) {
    for (;;) {
      const std::size_t at = pending_.find(end);
      if (at != std::string::npos) {
        std::string bytes = pending_.substr(0, at + end.size());
        pending_.erase(0, at + end.size());
        return bytes;
      }
      std::array<char, 4096> chunk;
      const ssize_t got = read(own_.get(), chunk.data(), chunk.size());
      if (got <= 0) return std::move(pending_);
      pending_.append(chunk.data(), static_cast<std::size_t>(got));
    }
  }
  /// The descriptor that comes with the next byte, which is kept; none when none comes.
  UniqueFd receive_descriptor() {
    char byte;
    iovec one{&byte, 1};
    int fd = -1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fd)> control{};
    msghdr message{};
    message.msg_iov = &one;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (recvmsg(own_.get(), &message, MSG_CMSG_CLOEXEC) != 1) return {};
    pending_ += byte;
    const cmsghdr* const header = CMSG_FIRSTHDR(&message);
    if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
      std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    }
    return UniqueFd(fd);
  }
  /// One gdb packet's payload, without the frame; "\x03" for an interrupt; empty at the end.
  std::string receive_packet() {
    const std::string bytes = receive_any();
    if (bytes == "\x03") return bytes;
    const std::size_t start = bytes.find('$'), hash = bytes.rfind('#');
    if (start == std::string::npos || hash == std::string::npos) return {};
    return bytes.substr(start + 1, hash - start - 1);
  }

 private:
  std::string receive_any() {
    if (pending_.empty()) {
      std::array<char, 4096> chunk;
      const ssize_t got = read(own_.get(), chunk.data(), chunk.size());
      if (got <= 0) return {};
      pending_.append(chunk.data(), static_cast<std::size_t>(got));
    }
    if (pending_.front() == '\x03') return receive_until("\x03");
    std::string packet = receive_until("#");
    while (pending_.size() < 2) {
      char c;
      if (read(own_.get(), &c, 1) != 1) return packet;
      pending_ += c;
    }
    pending_.erase(0, 2);  // the checksum
    return packet;
  }

  UniqueFd client_, own_;
  std::string pending_;
  std::thread thread_;
};

/// A gdb packet with its checksum.
inline std::string gdb_packet(std::string_view payload) {
  unsigned sum = 0;
  for (const char c : payload) sum += static_cast<unsigned char>(c);
  std::array<char, 4> tail{};
  std::snprintf(tail.data(), tail.size(), "#%02x", sum & 0xff);
  return "$" + std::string(payload) + tail.data();
}

/// The answer of a gdbstub whose first thread was interrupted.
inline const std::string kStopped = gdb_packet("T02thread:01;");

}  // namespace ringside::vmm
