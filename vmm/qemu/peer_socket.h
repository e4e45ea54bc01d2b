// A connected stream socket to QEMU, for qmp and gdb_remote. It never blocks past a deadline and
// never raises SIGPIPE. Does not: frame messages, or lock (one thread at a time).
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"

namespace ringside::vmm {

using Deadline = std::chrono::steady_clock::time_point;

class PeerSocket {
 public:
  /// `name`: of the peer, in messages: "QEMU's monitor".
  PeerSocket(UniqueFd fd, std::string_view name) : fd_(std::move(fd)), name_(name) {}

  int fd() const { return fd_.get(); }
  /// MachineGone when the peer has gone or does not take the bytes in time.
  Result<void> send(std::string_view bytes, Deadline deadline);
  /// The same over a Unix socket, with a copy of a descriptor at the first byte (SCM_RIGHTS).
  Result<void> send_descriptor(int descriptor, std::string_view bytes, Deadline deadline);
  /// Appends at least one byte to `into`. MachineGone when none comes in time.
  Result<void> receive(std::string& into, Deadline deadline);
  /// Appends the bytes that have arrived, without waiting; false when there were none.
  Result<bool> receive_now(std::string& into);
  /// Waits until poll(2) sees one of `events`. MachineGone when it does not in time.
  Result<void> wait_for(short events, Deadline deadline);

 private:
  UniqueFd fd_;
  std::string name_;
};

/// Waits until the peer of a Unix socket has read all that was sent. A peer that sees the hang-up
/// first may never read the rest (QEMU does not). False when it has not read it in time, or is
/// gone. Async-signal-safe.
bool await_taken(int socket, int milliseconds);

}  // namespace ringside::vmm
