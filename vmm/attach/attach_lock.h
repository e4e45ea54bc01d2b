// One ringside at a time sees into a machine: a name that the kernel takes back when its holder
// dies, and that tells who holds it. Everybody who attaches to the process takes it first, by
// whichever way.
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
  /// Who is attached to `pid`; empty when nobody is, or nobody can tell.
  static std::optional<pid_t> holder(pid_t pid);

 private:
  explicit AttachLock(UniqueFd socket) : socket_(std::move(socket)) {}

  UniqueFd socket_;
};

}  // namespace ringside::vmm
