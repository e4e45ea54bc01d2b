// Explains why we may not access another process: which rule of the host's kernel denies it
// (ptrace(2), "Ptrace access mode checking"), and what the user can do. Used for error messages.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "vmm/attach/process/host_process.h"
#include "vmm/base/result.h"

namespace ringside::vmm {

/// The facts that the rules look at.
struct AccessFacts {
  pid_t pid = 0;
  uid_t our_user = 0;
  std::optional<uid_t> their_user;  // empty: there is no such process
  std::optional<int> yama_scope;    // kernel.yama.ptrace_scope; empty: no Yama
  bool may_trace_all = false;       // CAP_SYS_PTRACE
};

/// The first rule that refuses. Pure.
Error access_refused(const AccessFacts& facts);
/// The same for this process and ours.
Error explain_no_access(const HostProcess& process);
/// `found` is why something of the process could not be read; where that is because a rule refuses
/// its memory to us, which one.
Error explain_unreadable(const HostProcess& process, Error found);

}  // namespace ringside::vmm
