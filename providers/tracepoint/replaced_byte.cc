#include "providers/tracepoint/replaced_byte.h"

#include <algorithm>
#include <array>

#include "disasm/decoder.h"
#include "vmm/arch/arch.h"

namespace ringside::providers {
namespace {

using Code = std::span<const std::byte>;

/// Shim::farewell() puts so many bytes before the instruction: two moves of 11 bytes.
constexpr std::size_t kFarewell = 22;

bool is_in_slot(Code instruction, GuestVirt address, Code code, GuestVirt slot) {
  const auto moved = disasm::relocate(instruction, address, slot);
  return moved && moved->size() <= code.size() &&
         std::equal(moved->begin(), moved->end(), code.begin());
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
  if (!decoded || decoded->length > original.size()) return std::nullopt;
  const auto instruction = original.first(decoded->length);
  const bool proved =
      is_in_slot(instruction, address, code, slot) ||
      (code.size() > kFarewell &&
       is_in_slot(instruction, address, code.subspan(kFarewell), slot.wrapping_add(kFarewell)));
  return proved ? std::optional(byte) : std::nullopt;
}

}  // namespace ringside::providers
