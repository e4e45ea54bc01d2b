// The sandbox of the VMM's own threads: those that run the guest or serve its devices, and so are
// the first that a guest could mislead. Such a thread has no capabilities, no new privileges, and a
// seccomp filter: ioctls of KVM, reading and writing on descriptors that are open, memory that is
// not executable, waiting, clocks, signals within this process, its end. Opening a file fails with
// EACCES. Starting a process or a thread, making a socket, tracing, and all else, ends the process
// by SIGSYS, with one line on stderr that has the call's number.
// What it protects: a guest that makes a device write where it should not cannot, by a system call
// of these threads, reach files, processes or the network that the machine does not have open.
// What it does not: the session's other threads share the address space, and keep their rights
// (-w runs commands, -o and freopen() open files, kernels and modules are read at any time), so
// who can write any memory of the process and waits for another thread to use it gets past. Give
// ringside a user of its own, with access to /dev/kvm and the disks only, for what that would need.
// Used by vcpu, serial_peers, virtio_worker, on a machine that is set up: what a thread needs is
// open. D programs that fire on a vCPU's thread need no more than that.
// Seccomp, capabilities: Linux Documentation/userspace-api/seccomp_filter.rst, capset(2).
// Fire context: no.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "vmm/base/result.h"

namespace ringside::vmm::kvm {

/// Puts the calling thread into the sandbox, for ever. Unsupported, in one line, where the kernel
/// does not take the filter; then the thread may have lost its capabilities already. Wants SIGSYS
/// unblocked, else the line on stderr is missing.
Result<void> enter_sandbox();

struct ThreadConfig {
  std::string name;  // at most 15 bytes
  int signal = 0;    // the one signal that it takes beside SIGSYS; the others are the main thread's
};
/// A thread that runs `body` in the sandbox; its error when it could not get in, and then `body`
/// has not begun. Returns when one or the other is known.
Result<std::thread> start_sandboxed(const ThreadConfig& config, std::function<void()> body);

}  // namespace ringside::vmm::kvm
