// The vCPU threads of a process that runs a guest by KVM. Nobody tells which they are, and their
// names say nothing: a vCPU is a descriptor, anon_inode:kvm-vcpu:N, and its thread is the one that
// sits in ioctl(KVM_RUN) on it. Used by ProcessVcpus and the list of VMs.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vmm/attach/process/host_process.h"
#include "vmm/attach/process/thread_stopper.h"

namespace ringside::vmm {

/// The number N of what a descriptor leads to or a mapping is of.
std::optional<unsigned> vcpu_number(const std::string& target);
/// Those that the process has descriptors of.
std::set<unsigned> vcpu_numbers(const std::vector<HostProcess::Descriptor>& descriptors);
/// Whether a system call is ioctl(fd, KVM_RUN).
bool is_kvm_run(std::int64_t number, std::uint64_t command);

/// Whether a thread is in KVM with a vCPU, or runs and may be; false where whoever runs them holds
/// them all back.
bool has_vcpu_in_kvm(const HostProcess& process);

struct VcpuThread {
  unsigned number = 0;  // KVM's, which is the APIC id as a rule
  pid_t thread = 0;
  std::uint64_t run_page = 0;  // where the process has struct kvm_run of it; 0: unknown
};

/// One a vCPU, in order of their numbers. A thread that is on a CPU just now is stopped once for a
/// look. Unsupported, with the reason, when there are none, when one's thread is not in KVM (a
/// guest that its owner has paused), or when two claim to be one.
Result<std::vector<VcpuThread>> find_vcpu_threads(const HostProcess& process,
                                                  ThreadStopper& stopper);

}  // namespace ringside::vmm
