#include "vmm/shim/slot_code.h"

#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "guest-shim/mailbox_abi.h"
#include "vmm/base/bytes.h"
#include "vmm/base/check.h"

namespace ringside::vmm {
namespace {

using Displacement = std::uint32_t;
/// After the displacement of a MOV of a constant to memory.
constexpr std::size_t kImmediateBytes = 4;

std::vector<std::byte> copy_of(std::span<const unsigned char> code) {
  const auto bytes = std::as_bytes(code);
  return {bytes.begin(), bytes.end()};
}

/// Lets the instruction that ends at `end` in the slot's code, `rest` bytes after its
/// displacement, name the word that lies at its displacement from `to` on.
void patch(std::vector<std::byte>& code, GuestVirt slot, std::size_t end, std::size_t rest,
           GuestVirt to) {
  CHECK(end <= code.size() && end >= sizeof(Displacement) + rest);
  const std::size_t at = end - rest - sizeof(Displacement);
  const auto distance = static_cast<Displacement>(to.offset_from(slot.wrapping_add(end)));
  const Displacement patched = load_at<Displacement>(code, at) + distance;
  std::memcpy(code.data() + at, &patched, sizeof patched);
}

}  // namespace

std::vector<std::byte> kexec_notice_code(GuestVirt slot, GuestVirt control) {
  auto code = copy_of(shim_kexec_notice);
  patch(code, slot, SHIM_KEXEC_NOTICE_LEFT_END, kImmediateBytes, control);
  patch(code, slot, SHIM_KEXEC_NOTICE_BYTES, kImmediateBytes, control);
  return code;
}

std::vector<std::byte> fault_search_code(GuestVirt slot, GuestVirt first) {
  auto code = copy_of(shim_fault_search);
  patch(code, slot, SHIM_FAULT_SEARCH_FIRST_END, 0, first);
  return code;
}

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
