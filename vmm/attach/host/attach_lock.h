// A lock that lets one ringside at a time attach to a machine. It is a name that the host's kernel
// frees when its holder dies, and that tells which process holds it. It is taken first, whichever
// way we attach.
#pragma once

#include <sys/types.h>

#include <optional>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"

namespace ringside::vmm {

class AttachLock {
 public:
  /// Limit, naming the process that is attached to `pid`; NotFound when there is no such process.
  static Result<AttachLock> take(pid_t pid);
  /// The process that is attached to `pid`; empty when there is none, or none can be told.
  static std::optional<pid_t> holder(pid_t pid);

 private:
  explicit AttachLock(UniqueFd socket) : socket_(std::move(socket)) {}

  UniqueFd socket_;
};

}  // namespace ringside::vmm
