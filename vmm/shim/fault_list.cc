#include "vmm/shim/fault_list.h"

#include <span>
#include <utility>

#include "guest-shim/mailbox_abi.h"

namespace ringside::vmm {

Result<std::uint64_t> FaultList::first_offset() {
  if (!first_) first_ = TRY(slots_.allocate_words(1));
  return *first_;
}

Result<GuestVirt> FaultList::first() {
  return base_.wrapping_add(TRY(first_offset()));
}

Result<void> FaultList::add(GuestVirt slot, GuestVirt place) {
  static_assert(SHIM_FAULT_NEXT == 0 && SHIM_FAULT_SLOT == 8 && SHIM_FAULT_PLACE == 16);
  const std::uint64_t first = TRY(first_offset());
  const std::uint64_t here = TRY(slots_.allocate_words(3));
  if (presence_.state() != ShimState::There) return region_gone();
  const std::uint64_t words[] = {newest_, slot.raw(), place.raw()};
  if (!region_.write(here, std::as_bytes(std::span(words)))) return region_gone();
  std::uint64_t expected = std::exchange(newest_, base_.wrapping_add(here).raw());
  return region_.replace(first, expected, newest_) ? Result<void>() : region_gone();
}

}  // namespace ringside::vmm
