#include "vmm/shim/slot_code.h"

#include <cstdint>
#include <cstring>
#include <span>

#include "guest-shim/mailbox_abi.h"
#include "vmm/base/bytes.h"
#include "vmm/base/check.h"
#include "vmm/shim/shim.h"

namespace ringside::vmm {
namespace {

using Displacement = std::uint32_t;
/// Behind the displacement of a MOV of a constant to memory.
constexpr std::size_t kImmediateBytes = 4;

std::vector<std::byte> copy_of(const unsigned char* code, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(code, size));
  return {bytes.begin(), bytes.end()};
}

/// Lets the instruction that ends at `end` in the slot's code, `behind` bytes after its
/// displacement, name the word that lies at its displacement from `to` on.
void patch(std::vector<std::byte>& code, GuestVirt slot, std::size_t end, std::size_t behind,
           GuestVirt to) {
  CHECK(end <= code.size() && end >= sizeof(Displacement) + behind);
  const std::size_t at = end - behind - sizeof(Displacement);
  const auto distance = static_cast<Displacement>(to.offset_from(slot.wrapping_add(end)));
  const Displacement patched = load_at<Displacement>(code, at) + distance;
  std::memcpy(code.data() + at, &patched, sizeof patched);
}

}  // namespace

std::vector<std::byte> kexec_notice_code(GuestVirt slot, GuestVirt control) {
  auto code = copy_of(shim_kexec_notice, shim_kexec_notice_size);
  patch(code, slot, shim_kexec_notice_left_end, kImmediateBytes, control);
  patch(code, slot, shim_kexec_notice_size, kImmediateBytes, control);
  return code;
}

std::vector<std::byte> fault_search_code(GuestVirt slot, GuestVirt first) {
  auto code = copy_of(shim_fault_search, shim_fault_search_size);
  CHECK(code.size() == Shim::kFaultSearchBytes);
  patch(code, slot, shim_fault_search_first_end, 0, first);
  return code;
}

}  // namespace ringside::vmm
