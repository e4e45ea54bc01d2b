// Zydis. In this file, top to bottom: where an instruction leads, decode(), operands.
#include <algorithm>

#include "disasm/decoders.h"

namespace ringside::disasm {
namespace {

bool has_relative_immediate(const ZydisDecodedInstruction& in) {
  return in.raw.imm[0].size != 0 && in.raw.imm[0].is_relative;
}

/// jmp [disp32 + index * 8]: no base register, so the displacement is the table itself.
bool is_table_jump(const ZydisDecodedInstruction& in) {
  const auto& raw = in.raw;
  const bool memory_with_sib = raw.modrm.mod != 3 && raw.modrm.rm == 4;
  if (!memory_with_sib || raw.sib.scale != 3) return false;
  const bool has_index = raw.sib.index != 4 || raw.rex.X != 0;
  const bool has_base = !(raw.modrm.mod == 0 && raw.sib.base == 5);
  return has_index && !has_base;
}

Flow branch_flow(const ZydisDecodedInstruction& in) {
  switch (in.meta.category) {
    case ZYDIS_CATEGORY_CALL:
      if (in.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR) return Flow::Other;
      return has_relative_immediate(in) ? Flow::Call : Flow::IndirectCall;
    case ZYDIS_CATEGORY_UNCOND_BR:
      if (in.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR) return Flow::Other;
      if (has_relative_immediate(in)) return Flow::Jump;
      return is_table_jump(in) ? Flow::TableJump : Flow::IndirectJump;
    case ZYDIS_CATEGORY_COND_BR:
      // xbegin is one for Zydis: its target is an abort handler, not a branch.
      return in.mnemonic == ZYDIS_MNEMONIC_XBEGIN ? Flow::Other : Flow::ConditionalJump;
    case ZYDIS_CATEGORY_RET: {
      const bool near =
          in.mnemonic == ZYDIS_MNEMONIC_RET && in.meta.branch_type != ZYDIS_BRANCH_TYPE_FAR;
      return near ? Flow::Return : Flow::Other;
    }
    case ZYDIS_CATEGORY_INTERRUPT:
      return in.mnemonic == ZYDIS_MNEMONIC_INT3 ? Flow::Stop : Flow::Other;
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_SYSRET: return Flow::Other;
    default: return Flow::Next;
  }
}

Flow flow_of(const ZydisDecodedInstruction& in) {
  switch (in.mnemonic) {
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_HLT: return Flow::Stop;
    case ZYDIS_MNEMONIC_INT1:
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_XBEGIN:
    case ZYDIS_MNEMONIC_XABORT:
    case ZYDIS_MNEMONIC_RSM: return Flow::Other;
    default: return branch_flow(in);
  }
}

/// The low nibble of a jcc's opcode (70..7f, 0f 80..8f); none for jrcxz and loop.
arch::Condition condition_of(const ZydisDecodedInstruction& in) {
  const bool short_form = in.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && (in.opcode & 0xf0) == 0x70;
  const bool long_form = in.opcode_map == ZYDIS_OPCODE_MAP_0F && (in.opcode & 0xf0) == 0x80;
  return short_form || long_form ? in.opcode & 0x0f : arch::kNoCondition;
}

bool loads_gs(const ZydisDecodedInstruction& in) {
  constexpr std::uint8_t kMovToSegment = 0x8e, kPopGs = 0xa9, kGs = 5;
  switch (in.mnemonic) {
    case ZYDIS_MNEMONIC_SWAPGS:
    case ZYDIS_MNEMONIC_WRGSBASE:
    case ZYDIS_MNEMONIC_LGS: return true;
    case ZYDIS_MNEMONIC_MOV:
      return in.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && in.opcode == kMovToSegment &&
             in.raw.modrm.reg == kGs;
    case ZYDIS_MNEMONIC_POP: return in.opcode_map == ZYDIS_OPCODE_MAP_0F && in.opcode == kPopGs;
    default: return false;
  }
}

bool is_rip(ZydisRegister which) {
  return which == ZYDIS_REGISTER_RIP || which == ZYDIS_REGISTER_EIP;
}

const ZydisDecoder& zydis() {
  static const ZydisDecoder decoder = [] {
    ZydisDecoder fresh;
    ZydisDecoderInit(&fresh, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return fresh;
  }();
  return decoder;
}

}  // namespace

std::optional<ZydisDecodedInstruction> decode_raw(std::span<const std::byte> bytes) {
  ZydisDecodedInstruction in;
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&zydis(), nullptr, bytes.data(),
                                                  std::min(bytes.size(), arch::kLongestInstruction),
                                                  &in))) {
    return std::nullopt;
  }
  return in;
}

Instruction summarize(const ZydisDecodedInstruction& raw, GuestVirt address) {
  Instruction out;
  out.length = raw.length;
  out.flow = flow_of(raw);
  out.rip_relative = (raw.attributes & ZYDIS_ATTRIB_HAS_MODRM) != 0 && raw.raw.modrm.mod == 0 &&
                     raw.raw.modrm.rm == 5 && raw.raw.disp.size == 32;
  if (out.flow == Flow::Call || out.flow == Flow::Jump || out.flow == Flow::ConditionalJump) {
    out.target =
        address.wrapping_add(raw.length + static_cast<std::uint64_t>(raw.raw.imm[0].value.s));
  }
  if (out.flow == Flow::TableJump) {
    out.target = GuestVirt(static_cast<std::uint64_t>(raw.raw.disp.value));
  }
  if (out.flow == Flow::ConditionalJump) out.condition = condition_of(raw);
  out.is_sti = raw.mnemonic == ZYDIS_MNEMONIC_STI;
  out.loads_idt = raw.mnemonic == ZYDIS_MNEMONIC_LIDT;
  out.loads_gs = loads_gs(raw);
  return out;
}

std::optional<Instruction> decode(std::span<const std::byte> bytes, GuestVirt address) {
  if (const auto common = decode_common(bytes, address)) return common;
  const auto raw = decode_raw(bytes);
  if (!raw) return std::nullopt;
  return summarize(*raw, address);
}

std::optional<Decoded> decode_all(std::span<const std::byte> bytes) {
  Decoded out;
  const auto size = std::min(bytes.size(), arch::kLongestInstruction);
  const auto status =
      ZydisDecoderDecodeFull(&zydis(), bytes.data(), size, &out.in, out.operands.data());
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
  const auto& mem = operand.mem;
  const bool is_address = mem.type == ZYDIS_MEMOP_TYPE_AGEN;
  if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY ||
      (mem.type != ZYDIS_MEMOP_TYPE_MEM && !is_address))
    return std::nullopt;
  MemoryOperand out;
  if (!is_address) out.segment_base = register_of(mem.segment);  // null for those whose base is 0
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
