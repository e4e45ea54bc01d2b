// The sandbox of the threads that run the guest or serve its devices, because they are the first
// that a guest could mislead. Such a thread has no capabilities, gains no privileges, and has a
// seccomp filter. It may use ioctls of KVM, read and write on open descriptors, map memory that is
// not executable, wait, read clocks, signal this process, and end. Opening a file fails with
// EACCES. Anything else (starting a process or a thread, making a socket, tracing) ends the process
// by SIGSYS, with one line on stderr that has the call's number. It protects files, processes and
// the network that the machine has not open from a guest that makes a device write where it should
// not. It does not protect from a guest that can write any memory of the process and waits for
// another thread to use it: the session's other threads share the address space and keep their
// rights (-w runs commands, -o and freopen() open files, kernels and modules are read at any time).
// Against that, run ringside as a user of its own that has access to /dev/kvm and the disks only.
// Used by vcpu, serial_peers, virtio_worker, after all that their threads need is open. D programs
// that fire on a vCPU's thread need no more.
// Seccomp, capabilities: Linux Documentation/userspace-api/seccomp_filter.rst, capset(2).
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "vmm/base/result.h"

namespace ringside::vmm::kvm {

/// Puts the calling thread into the sandbox, for ever. Unsupported where the kernel does not take
/// the filter; the thread may have lost its capabilities then. SIGSYS must not be blocked, else the
/// line on stderr is missing.
Result<void> enter_sandbox();

struct ThreadConfig {
  std::string name;  // at most 15 bytes
  int signal = 0;    // the one signal that it receives beside SIGSYS; 0: none
};
/// Starts a thread that runs `body` in the sandbox. Returns when it is in, or with the error of
/// enter_sandbox(), and then `body` does not run. The caller joins the thread.
Result<std::thread> start_sandboxed(const ThreadConfig& config, std::function<void()> body);

}  // namespace ringside::vmm::kvm
