#include "vmm/kvm/ram_slots.h"

#include "vmm/arch/arch.h"
#include "vmm/kvm/boot/layout.h"

namespace ringside::vmm::kvm {

RamSlots::RamSlots(std::uint64_t size) : pieces_(place_ram(size)) {}

Result<void> RamSlots::set(const KvmVm& vm, const SharedRam& ram, bool log_dirty) const {
  for (std::uint32_t slot = 0; slot < pieces_.size(); ++slot) {
    const RamPiece& piece = pieces_[slot];
    TRY(vm.set_memory(slot, piece.base, ram.bytes_of(piece), log_dirty));
  }
  return {};
}

std::optional<GuestPhys> RamSlots::page(std::uint32_t slot, std::uint64_t page) const {
  if (slot >= pieces_.size() || page >= pieces_[slot].size / arch::kPageSize) return std::nullopt;
  return pieces_[slot].base.checked_add(page * arch::kPageSize);
}

}  // namespace ringside::vmm::kvm
