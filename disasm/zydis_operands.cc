#include "disasm/zydis_operands.h"

#include <algorithm>

namespace ringside::disasm {
namespace {

bool is_rip(ZydisRegister which) {
  return which == ZYDIS_REGISTER_RIP || which == ZYDIS_REGISTER_EIP;
}

}  // namespace

std::optional<Decoded> decode_all(std::span<const std::byte> bytes) {
  static const ZydisDecoder decoder = [] {
    ZydisDecoder fresh;
    ZydisDecoderInit(&fresh, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return fresh;
  }();
  Decoded out;
  const auto size = std::min(bytes.size(), arch::kLongestInstruction);
  const auto status =
      ZydisDecoderDecodeFull(&decoder, bytes.data(), size, &out.in, out.operands.data());
  return ZYAN_SUCCESS(status) ? std::optional(out) : std::nullopt;
}

arch::Register register_of(ZydisRegister which) {
  if (which == ZYDIS_REGISTER_FS) return &Registers::fs_base;
  if (which == ZYDIS_REGISTER_GS) return &Registers::gs_base;
  const auto width = ZydisRegisterGetClass(which);
  if (width != ZYDIS_REGCLASS_GPR64 && width != ZYDIS_REGCLASS_GPR32) return nullptr;
  const auto id = static_cast<std::uint8_t>(ZydisRegisterGetId(which));  // of none: the largest
  return id < arch::kByEncoding.size() ? arch::kByEncoding[id] : nullptr;
}

std::optional<MemoryOperand> memory_of(const ZydisDecodedOperand& operand, GuestVirt next) {
  if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY || operand.mem.type != ZYDIS_MEMOP_TYPE_MEM) {
    return std::nullopt;
  }
  const auto& mem = operand.mem;
  MemoryOperand out;
  out.segment_base = register_of(mem.segment);  // null for those whose base is 0
  out.displacement = mem.disp.has_displacement ? mem.disp.value : 0;
  if (is_rip(mem.base)) {
    out.displacement += static_cast<std::int64_t>(next.raw());
  } else if (mem.base != ZYDIS_REGISTER_NONE) {
    out.base = register_of(mem.base);
    if (out.base == nullptr) return std::nullopt;
    out.is_32_bit = ZydisRegisterGetClass(mem.base) == ZYDIS_REGCLASS_GPR32;
  }
  if (mem.index != ZYDIS_REGISTER_NONE) {
    out.index = register_of(mem.index);
    if (out.index == nullptr) return std::nullopt;
    out.scale = std::max<std::uint8_t>(mem.scale, 1);
    out.is_32_bit |= ZydisRegisterGetClass(mem.index) == ZYDIS_REGCLASS_GPR32;
  }
  return out;
}

}  // namespace ringside::disasm
