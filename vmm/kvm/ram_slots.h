// The memory slots of a machine's RAM in KVM: which slot holds which piece.
// Used by kvm_guest (makes them) and vcpu (what a ring of dirty pages says, in slots).
// Threads: any; constant.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "vmm/base/address.h"
#include "vmm/kvm/kvm_vm.h"
#include "vmm/shared_ram.h"

namespace ringside::vmm::kvm {

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
