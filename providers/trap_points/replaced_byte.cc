#include "providers/trap_points/replaced_byte.h"

#include <algorithm>
#include <array>

#include "disasm/decoder.h"
#include "vmm/arch/arch.h"
#include "vmm/shim/trap_table.h"

namespace ringside::providers {
namespace {

using Code = std::span<const std::byte>;

/// So many bytes may lie before the instruction: of TrapTable::kexec_notice() and
/// Shim::fault_search().
constexpr std::size_t kBefore[] = {0, vmm::TrapTable::kKexecNoticeBytes,
                                   vmm::TrapTable::kFaultSearchBytes};

bool is_in_slot(Code instruction, GuestVirt address, Code code, GuestVirt slot) {
  const auto begins_with = [code](Code moved) {
    return moved.size() <= code.size() && std::ranges::equal(moved, code.first(moved.size()));
  };
  const auto returning = disasm::relocate_with_return(instruction, address, slot);
  if (returning && begins_with(returning->bytes)) return true;
  const auto moved = disasm::relocate(instruction, address, slot);
  return moved && begins_with(*moved);
}

}  // namespace

std::optional<std::byte> find_replaced(Code text, GuestVirt address, std::byte byte, Code code,
                                       GuestVirt slot) {
  if (text.empty() || text[0] != arch::kBreakpoint) return std::nullopt;
  std::array<std::byte, arch::kLongestInstruction> copy{};
  const auto original = std::span(copy).first(std::min(copy.size(), text.size()));
  std::copy_n(text.begin(), original.size(), original.begin());
  original[0] = byte;
  const auto decoded = disasm::decode(original, address);
  if (!decoded) return std::nullopt;
  const auto instruction = original.first(decoded->length);
  const bool proved = std::ranges::any_of(kBefore, [&](std::size_t before) {
    return code.size() > before &&
           is_in_slot(instruction, address, code.subspan(before), slot.wrapping_add(before));
  });
  return proved ? std::optional(byte) : std::nullopt;
}

std::optional<vmm::JumpBytes> find_replaced_by_jump(Code text, GuestVirt address, Code record,
                                                    GuestVirt place, GuestVirt jump_entry) {
  if (record.size() < vmm::JumpRecord::kBytes) return std::nullopt;
  vmm::JumpRecord::Bytes head;
  std::copy_n(record.begin(), head.size(), head.begin());
  const auto decoded = vmm::JumpRecord::decode(head, place, jump_entry);
  if (!decoded || decoded->address != address) return std::nullopt;

  std::array<std::byte, SHIM_JUMP_BYTES - 1 + arch::kLongestInstruction> copy{};
  const auto original = std::span(copy).first(std::min(copy.size(), text.size()));
  if (original.size() < decoded->replaced.size()) return std::nullopt;
  std::copy_n(text.begin(), original.size(), original.begin());
  std::ranges::copy(decoded->replaced, original.begin());
  std::size_t size = 0;
  while (size < SHIM_JUMP_BYTES) {
    const auto in = disasm::decode(original.subspan(size), address.wrapping_add(size));
    if (!in) return std::nullopt;
    size += in->length;
  }
  const Code code = record.subspan(head.size());
  const auto moved =
      disasm::relocate_run(original.first(size), address, place.wrapping_add(head.size()));
  const bool proved = moved && moved->size() <= code.size() &&
                      std::equal(moved->begin(), moved->end(), code.begin());
  return proved ? std::optional(decoded->replaced) : std::nullopt;
}

}  // namespace ringside::providers
