// The vCPU threads of a process that runs a guest by KVM. The process does not tell which threads
// they are, and the names of threads prove nothing. A vCPU is a descriptor, anon_inode:kvm-vcpu:N;
// its thread is the one inside ioctl(KVM_RUN) on that descriptor. Used by ProcessVcpus and the list
// of VMs.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vmm/attach/host/host_process.h"
#include "vmm/attach/process/thread_stopper.h"

namespace ringside::vmm {

/// The number N of what a descriptor leads to or a mapping is of.
std::optional<unsigned> vcpu_number(const std::string& target);
/// The numbers of the vCPUs for which the process has descriptors. QEMU keeps the descriptor of a
/// vCPU that was unplugged (kvm_park_vcpu()), for the next one of its number.
std::set<unsigned> vcpu_numbers(const std::vector<HostProcess::Descriptor>& descriptors);
/// The same without those that were unplugged, whose struct kvm_run is mapped no more.
Result<std::set<unsigned>> vcpus_in_use(const HostProcess& process);
/// Whether a system call is ioctl(fd, KVM_RUN).
bool is_kvm_run(std::int64_t number, std::uint64_t command);

/// Whether a thread is in KVM with a vCPU, or runs and may be in KVM. False if the process keeps
/// all its vCPUs out of KVM.
bool has_vcpu_in_kvm(const HostProcess& process);

struct VcpuThread {
  unsigned number = 0;  // KVM's, which is the APIC id as a rule
  pid_t thread = 0;
  std::uint64_t run_page = 0;  // where the process has struct kvm_run of it; 0: unknown
  bool is_plugged_in = false;  // it was not there when the list was made
};

/// One thread for each vCPU, by vCPU number. A thread that runs on a CPU at that moment is stopped
/// once, to see where it is. Unsupported, with the reason, when there are none, when one's thread
/// is not in KVM (a guest that its owner has paused), or when two claim to be one.
Result<std::vector<VcpuThread>> find_vcpu_threads(const HostProcess& process,
                                                  ThreadStopper& stopper);
/// Brings such a list up to date: those that were unplugged go, those that were plugged in come
/// last. On an error those that have gone are out, and no new one is in.
Result<void> update_vcpu_threads(const HostProcess& process, ThreadStopper& stopper,
                                 std::vector<VcpuThread>& threads);

}  // namespace ringside::vmm
