// A small process that protects a guest which outlives us: one that is kept, or one that is not
// ours. When we die, at any moment, it lets the guest run on. Without it, a SIGKILL in the middle
// of a pause would leave the guest stopped for ever. It ends right after us. If we are stopped
// (SIGSTOP, Ctrl-Z) during a pause of somebody else's guest, and do not continue in time, it kills
// us before it lets the guest go. Otherwise we might write later into a guest that runs. Threads
// that we hold by ptrace are let go by the host's kernel, but only when we end. Used by start_qemu
// with QemuConfig::keep, and for attached machines. Does not: touch the guest while we live, even
// if we hang.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"

namespace ringside::vmm {

class Guardian {
 public:
  /// The peer that the guest is let go through; None for ptrace.
  enum class Peer : std::uint8_t { Debugger, Monitor, None };
  /// A guest of ours is let go whenever we die; another's from hold() to unhold(), since its owner
  /// may have stopped it, too.
  enum class When : std::uint8_t { Always, Held };
  /// Forks the process; it shares `connection`, our end to the gdbstub or the monitor, until it
  /// ends; -1 without a peer. Safe in whatever thread: it makes only calls that are. `timeout` is
  /// for how long we may be stopped while we hold another's guest. Once the guest is let go the
  /// file `mark` is removed, if it is named.
  static Result<Guardian> start(int connection, Peer peer = Peer::Debugger,
                                When when = When::Always, const std::string& mark = {},
                                std::chrono::milliseconds timeout = std::chrono::seconds(3));
  Guardian(Guardian&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), life_(std::move(other.life_)) {}
  Guardian& operator=(Guardian&&) = delete;
  ~Guardian() { release(); }

  void hold() { send_word('h'); }
  void unhold() { send_word('l'); }
  /// It lets the guest go as if we had died, once its QEMU listens again, and ends then.
  void outlive_us();
  /// Ends the process, which leaves the guest alone. May be called again.
  void release();

 private:
  Guardian(pid_t pid, UniqueFd life) : pid_(pid), life_(std::move(life)) {}
  void send_word(char word);

  pid_t pid_;      // 0: released
  UniqueFd life_;  // a socket that closes when we end; a byte in it is an order
};

}  // namespace ringside::vmm
