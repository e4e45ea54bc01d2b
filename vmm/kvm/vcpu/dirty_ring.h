// A vCPU's ring of pages that it has written (Linux Documentation/virt/kvm/api.rst, 8.29): KVM
// marks entries dirty, we take them in order and mark them for KVM_RESET_DIRTY_RINGS. Threads: the
// vCPU's own.
#pragma once

#include <linux/kvm.h>

#include <cstdint>
#include <functional>
#include <span>

namespace ringside::vmm::kvm {

class DirtyRing {
 public:
  /// `entries`: mapped from KVM, for longer than this object lives; empty where this KVM has none.
  explicit DirtyRing(std::span<kvm_dirty_gfn> entries) : entries_(entries) {}

  /// Takes what is dirty: `tell` gets each page's memory slot and its number in that slot. True
  /// when there was any; then the rings have to be reset (KvmVm::reset_dirty_rings).
  bool harvest(const std::function<void(std::uint32_t slot, std::uint64_t page)>& tell);

 private:
  const std::span<kvm_dirty_gfn> entries_;
  std::size_t next_ = 0;
};

}  // namespace ringside::vmm::kvm
