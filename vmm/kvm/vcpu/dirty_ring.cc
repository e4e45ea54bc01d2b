#include "vmm/kvm/vcpu/dirty_ring.h"

namespace ringside::vmm::kvm {

bool DirtyRing::harvest(const std::function<void(std::uint32_t slot, std::uint64_t page)>& tell) {
  bool any = false;
  for (std::size_t seen = 0; seen < entries_.size(); ++seen) {
    kvm_dirty_gfn& entry = entries_[next_];
    // SAFETY: KVM writes the entry before its flag, and leaves both alone until we change the flag.
    if (__atomic_load_n(&entry.flags, __ATOMIC_ACQUIRE) != KVM_DIRTY_GFN_F_DIRTY) break;
    tell(entry.slot, entry.offset);
    __atomic_store_n(&entry.flags, std::uint32_t{KVM_DIRTY_GFN_F_RESET}, __ATOMIC_RELEASE);
    next_ = (next_ + 1) % entries_.size();
    any = true;
  }
  return any;
}

}  // namespace ringside::vmm::kvm
