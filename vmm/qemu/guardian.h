// A small process beside a guest that is kept: when we die, in whatever moment, it lets the guest
// run on. Without it a SIGKILL in the middle of a pause would leave the guest stopped for ever.
// Used by start_qemu with QemuConfig::keep. Does not: end with the guest's pause when we only
// hang, or touch the guest while we live. It never outlives us by more than a moment.
// Fire context: no.
#pragma once

#include <sys/types.h>

#include <utility>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"

namespace ringside::vmm {

class Guardian {
 public:
  /// Forks the process; it shares `gdb`, our end of the gdbstub's connection, until it ends. Call
  /// it while the process has one thread.
  static Result<Guardian> start(int gdb);
  Guardian(Guardian&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), life_(std::move(other.life_)) {}
  Guardian& operator=(Guardian&&) = delete;
  ~Guardian() { release(); }

  /// Sends it home: it ends at once and leaves the guest alone. Idempotent.
  void release();

 private:
  Guardian(pid_t pid, UniqueFd life) : pid_(pid), life_(std::move(life)) {}

  pid_t pid_;      // 0: released
  UniqueFd life_;  // a socket that closes with us; a byte in it is the release
};

}  // namespace ringside::vmm
