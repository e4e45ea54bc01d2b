// One virtual machine of KVM: interrupt controllers, timer, memory slots; it also makes the vCPUs.
// A thin owner of the descriptor; the order of the calls is in create(). Used by kvm_guest and the
// trap trial. Threads: set_line may be called from any.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "vmm/base/address.h"
#include "vmm/kvm/api/kvm_system.h"
#include "vmm/kvm/api/kvm_vcpu.h"
#include "vmm/shared_ram.h"

namespace ringside::vmm::kvm {

class KvmVm {
 public:
  /// With interrupt controllers and PIT in the kernel, or bare (for trials of a few instructions).
  enum class Chips : std::uint8_t { InKernel, None };
  static Result<KvmVm> create(const KvmSystem& system, Chips chips);

  int fd() const { return fd_.get(); }
  /// Makes `bytes` of our memory the RAM at `base`, as slot number `slot`; they must outlive the
  /// VM. `log_dirty`: pages that vCPUs write go to their rings. Called again to change that.
  Result<void> set_memory(std::uint32_t slot, GuestPhys base, std::span<std::byte> bytes,
                          bool log_dirty = false) const;
  Result<void> set_line(std::uint32_t gsi, bool level) const;
  /// Pages that were taken out of the rings of dirty pages are watched again.
  void reset_dirty_rings() const;
  /// From now on a 4-byte write of the guest at `at`, of any value, is no exit but makes the
  /// eventfd `event` readable.
  Result<void> notify_by_event(std::uint64_t at, int event) const;
  /// KVM_ENABLE_CAP with one argument.
  Result<void> enable(std::uint32_t capability, std::uint64_t argument, const char* name) const;
  /// Set its CPUID before it runs.
  Result<KvmVcpu> create_vcpu(const KvmSystem& system, unsigned index) const;
  /// Entries of each vCPU's ring of dirty pages; 0 where this KVM has none.
  std::uint32_t dirty_ring_size() const { return dirty_ring_size_; }

 private:
  KvmVm(UniqueFd fd, std::uint32_t dirty_ring_size)
      : fd_(std::move(fd)), dirty_ring_size_(dirty_ring_size) {}

  UniqueFd fd_;
  std::uint32_t dirty_ring_size_;
};

/// The memory slots of a machine's RAM in KVM: which slot holds which piece.
/// Used by kvm_guest (makes them) and vcpu (what a ring of dirty pages says, in slots).
/// Threads: any; constant.
class RamSlots {
 public:
  /// RAM of `size` bytes, placed as boot/layout.h says.
  explicit RamSlots(std::uint64_t size);

  /// Makes the slots, of `ram`, which has the same size and outlives `vm`; or changes whether pages
  /// that vCPUs write are logged in their rings.
  Result<void> set(const KvmVm& vm, const SharedRam& ram, bool log_dirty) const;
  /// The address of page number `page` of a slot; empty for a page that is not RAM.
  std::optional<GuestPhys> page(std::uint32_t slot, std::uint64_t page) const;

 private:
  const std::vector<RamPiece> pieces_;  // by slot
};

}  // namespace ringside::vmm::kvm
