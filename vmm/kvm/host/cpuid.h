// The CPUID of the guest's CPUs: KVM's table of its own abilities, fitted to one vCPU.
// Used by kvm_system (asks), kvm_guest (fits and sets) and the fitness trial. Pure.
// Intel SDM volume 2A, CPUID; AMD APM volume 3, appendix E; Linux
// Documentation/virt/kvm/x86/cpuid.rst for the leaves from 0x40000000 on.
#pragma once

#include <linux/kvm.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ringside::vmm::kvm {

/// struct kvm_cpuid2 of kvm.h. Not that struct itself: its flexible array member is declared so
/// that C++ gives the header 12 bytes, in the ioctl numbers too.
struct CpuidTable {
  static constexpr std::uint32_t kRoom = 256;  // KVM's own limit
  std::uint32_t count = kRoom;                 // in: the room; out: the entries
  std::uint32_t padding = 0;
  kvm_cpuid_entry2 room[kRoom];

  std::span<kvm_cpuid_entry2> entries() { return std::span(room).first(std::min(count, kRoom)); }
  std::span<const kvm_cpuid_entry2> entries() const {
    return std::span(room).first(std::min(count, kRoom));
  }
  const kvm_cpuid_entry2* find(std::uint32_t leaf, std::uint32_t subleaf = 0) const;
};
static_assert(offsetof(CpuidTable, room) == 8, "as in C");
inline constexpr unsigned long kGetSupportedCpuid = _IOC(_IOC_READ | _IOC_WRITE, KVMIO, 0x05, 8);
inline constexpr unsigned long kSetCpuid = _IOC(_IOC_WRITE, KVMIO, 0x90, 8);

struct CpuidPlan {
  std::uint32_t apic_id = 0;
  std::uint32_t vcpus = 1;    // each a core of its own, all in one package
  bool tsc_deadline = false;  // KVM_CAP_TSC_DEADLINE_TIMER
};

/// Turns KVM's table into that of one vCPU. KVM_GET_SUPPORTED_CPUID leaves to us: the hypervisor
/// bit (without it a guest sees no kvm-clock), the TSC deadline timer, APIC ids and the topology,
/// which would otherwise be the host's.
void fit_cpuid(CpuidTable& table, const CpuidPlan& plan);

}  // namespace ringside::vmm::kvm
