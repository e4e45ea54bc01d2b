#include "disasm/addition.h"

#include "disasm/zydis_operands.h"

namespace ringside::disasm {
namespace {

constexpr unsigned kBits = 64;

/// Of inc and dec.
std::optional<std::int64_t> step_of(const ZydisDecodedInstruction& in) {
  if (in.mnemonic == ZYDIS_MNEMONIC_INC) return 1;
  if (in.mnemonic == ZYDIS_MNEMONIC_DEC) return -1;
  return std::nullopt;
}

}  // namespace

std::optional<Addition> decode_addition(std::span<const std::byte> bytes, GuestVirt address) {
  const auto decoded = decode_all(bytes);
  if (!decoded || (decoded->in.attributes & ZYDIS_ATTRIB_HAS_LOCK) != 0) return std::nullopt;
  const auto step = step_of(decoded->in);
  const bool adds = decoded->in.mnemonic == ZYDIS_MNEMONIC_ADD;
  const bool subtracts = decoded->in.mnemonic == ZYDIS_MNEMONIC_SUB;
  const ZydisDecodedOperand& target = decoded->operands[0];
  if ((!step && !adds && !subtracts) || target.size != kBits) return std::nullopt;
  const auto memory = memory_of(target, address.wrapping_add(decoded->in.length));
  if (!memory) return std::nullopt;
  Addition out{.memory = *memory, .source = nullptr, .number = 0, .is_subtracted = subtracts};
  if (step) {
    out.number = *step;
    return out;
  }
  const ZydisDecodedOperand& source = decoded->operands[1];
  if (source.type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
    out.number = source.imm.value.s;
    return out;
  }
  if (source.type != ZYDIS_OPERAND_TYPE_REGISTER) return std::nullopt;
  out.source = register_of(source.reg.value);
  return out.source != nullptr ? std::optional(out) : std::nullopt;
}

std::uint64_t amount(const Addition& addition, const Registers& registers) {
  const std::uint64_t value = addition.source != nullptr
                                  ? registers.*addition.source
                                  : static_cast<std::uint64_t>(addition.number);
  return addition.is_subtracted ? 0 - value : value;
}

}  // namespace ringside::disasm
