// The pidfd system calls (Linux 5.3). glibc 2.36 declares them without extern "C", so that C++
// programs do not link.
#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "vmm/base/unique_fd.h"

namespace ringside::vmm {

/// Readable once `pid` has ended; always close-on-exec. Empty with errno on failure.
inline UniqueFd open_pidfd(pid_t pid) {
  return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

/// Cannot hit another process that got the same number. Harmless when the process has ended.
inline void signal_pidfd(int pidfd, int signal) {
  (void)syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0);
}

}  // namespace ringside::vmm
