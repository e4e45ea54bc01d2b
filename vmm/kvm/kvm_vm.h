// One virtual machine of KVM: interrupt controllers, timer, memory slots, and what makes its vCPUs.
// A thin owner of the descriptor; the order of the calls is in create().
// Used by kvm_guest and the trap trial. Threads: set_line may be called from any.
// Fire context: no.
#pragma once

#include <cstdint>
#include <span>

#include "vmm/base/address.h"
#include "vmm/kvm/kvm_system.h"
#include "vmm/kvm/vcpu/kvm_vcpu.h"

namespace ringside::vmm::kvm {

class KvmVm {
 public:
  /// With interrupt controllers and PIT in the kernel, or bare (for trials of a few instructions).
  enum class Chips : std::uint8_t { InKernel, None };
  static Result<KvmVm> create(const KvmSystem& system, Chips chips);

  int fd() const { return fd_.get(); }
  /// Slot `slot`: `bytes` of our memory at `base`; says it again to change `log_dirty`.
  Result<void> set_memory(std::uint32_t slot, GuestPhys base, std::span<std::byte> bytes,
                          bool log_dirty = false) const;
  Result<void> set_line(std::uint32_t gsi, bool level) const;
  /// What vCPUs took out of their rings of dirty pages is watched again.
  void reset_dirty_rings() const;
  /// A guest's 4-byte write at `at`, of whatever value, makes `event` readable and is no exit.
  Result<void> notify_by_event(std::uint64_t at, int event) const;
  /// KVM_ENABLE_CAP with one argument.
  Result<void> enable(std::uint32_t capability, std::uint64_t argument, const char* name) const;
  /// Its CPUID must be set before it runs.
  Result<KvmVcpu> create_vcpu(const KvmSystem& system, unsigned index) const;
  /// Entries of each vCPU's ring of dirty pages; 0 where this KVM has none.
  std::uint32_t dirty_ring_size() const { return dirty_ring_size_; }

 private:
  KvmVm(UniqueFd fd, std::uint32_t dirty_ring_size)
      : fd_(std::move(fd)), dirty_ring_size_(dirty_ring_size) {}

  UniqueFd fd_;
  std::uint32_t dirty_ring_size_;
};

}  // namespace ringside::vmm::kvm
