// The effects of instructions, where they can be evaluated. In this file, top to bottom: effects,
// operands, take_effect().
#include <algorithm>
#include <array>
#include <utility>

#include "disasm/decoders.h"

namespace ringside::disasm {
namespace {

/// By mnemonic: those whose effects depend on their operands alone. Others are below.
constexpr auto kEffects = [] {
  std::array<Effect, ZYDIS_MNEMONIC_MAX_VALUE + 1> effects{};
  effects[ZYDIS_MNEMONIC_NOP] = Effect::Nothing;
  effects[ZYDIS_MNEMONIC_ENDBR64] = Effect::Nothing;
  effects[ZYDIS_MNEMONIC_MOV] = Effect::Move;
  effects[ZYDIS_MNEMONIC_MOVZX] = Effect::Move;
  effects[ZYDIS_MNEMONIC_MOVSX] = Effect::SignExtend;
  effects[ZYDIS_MNEMONIC_MOVSXD] = Effect::SignExtend;
  effects[ZYDIS_MNEMONIC_LEA] = Effect::LoadAddress;
  effects[ZYDIS_MNEMONIC_XCHG] = Effect::Exchange;
  effects[ZYDIS_MNEMONIC_PUSH] = Effect::Push;
  effects[ZYDIS_MNEMONIC_POP] = Effect::Pop;
  effects[ZYDIS_MNEMONIC_LEAVE] = Effect::Leave;
  effects[ZYDIS_MNEMONIC_AND] = Effect::And;
  effects[ZYDIS_MNEMONIC_OR] = Effect::Or;
  effects[ZYDIS_MNEMONIC_XOR] = Effect::Xor;
  effects[ZYDIS_MNEMONIC_TEST] = Effect::Test;
  effects[ZYDIS_MNEMONIC_ADD] = Effect::Add;
  effects[ZYDIS_MNEMONIC_ADC] = Effect::AddCarry;
  effects[ZYDIS_MNEMONIC_SUB] = Effect::Subtract;
  effects[ZYDIS_MNEMONIC_SBB] = Effect::SubtractBorrow;
  effects[ZYDIS_MNEMONIC_CMP] = Effect::Compare;
  effects[ZYDIS_MNEMONIC_INC] = Effect::Increment;
  effects[ZYDIS_MNEMONIC_DEC] = Effect::Decrement;
  effects[ZYDIS_MNEMONIC_NEG] = Effect::Negate;
  effects[ZYDIS_MNEMONIC_NOT] = Effect::Not;
  effects[ZYDIS_MNEMONIC_SHL] = Effect::ShiftLeft;
  effects[ZYDIS_MNEMONIC_SHR] = Effect::ShiftRight;
  effects[ZYDIS_MNEMONIC_SAR] = Effect::ShiftArithmetic;
  effects[ZYDIS_MNEMONIC_ROL] = Effect::RotateLeft;
  effects[ZYDIS_MNEMONIC_ROR] = Effect::RotateRight;
  effects[ZYDIS_MNEMONIC_IMUL] = Effect::Multiply;
  effects[ZYDIS_MNEMONIC_BT] = Effect::BitTest;
  effects[ZYDIS_MNEMONIC_BSWAP] = Effect::ByteSwap;
  effects[ZYDIS_MNEMONIC_POPCNT] = Effect::CountOnes;
  effects[ZYDIS_MNEMONIC_CDQ] = Effect::HighSignToData;
  effects[ZYDIS_MNEMONIC_CQO] = Effect::HighSignToData;
  effects[ZYDIS_MNEMONIC_CWDE] = Effect::SignExtend;
  effects[ZYDIS_MNEMONIC_CDQE] = Effect::SignExtend;
  return effects;
}();

/// The low nibble of the opcodes 0f 40..4f (cmov) and 0f 90..9f (set).
bool has_opcodes(const ZydisDecodedInstruction& in, std::uint8_t row) {
  return in.opcode_map == ZYDIS_OPCODE_MAP_0F && (in.opcode & 0xf0) == row;
}

Effect effect_of(const ZydisDecodedInstruction& in, const Operation& out) {
  switch (out.flow) {
    case Flow::Call: return Effect::Call;
    case Flow::Jump: return Effect::Jump;
    case Flow::ConditionalJump:
      // jrcxz and loop depend on no flags; no compiler makes them.
      return out.condition != arch::kNoCondition ? Effect::Jump : Effect::Unknown;
    case Flow::Return: return in.raw.imm[0].size == 0 ? Effect::Return : Effect::Unknown;
    case Flow::Next: break;
    default: return Effect::Unknown;
  }
  if (has_opcodes(in, 0x40)) return Effect::MoveIf;
  if (has_opcodes(in, 0x90)) return Effect::SetIf;
  return kEffects.at(in.mnemonic);
}

/// Fills `out`; false for a register that no trap keeps (segments, vectors), and for memory whose
/// address is no sum of those.
bool take_register(const ZydisDecodedOperand& operand, Operand& out) {
  const ZydisRegister name = operand.reg.value;
  const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, name);
  if (ZydisRegisterGetClass(whole) != ZYDIS_REGCLASS_GPR64) return false;
  out.kind = Operand::Kind::Register;
  out.which = register_of(whole);
  out.is_high = name >= ZYDIS_REGISTER_AH && name <= ZYDIS_REGISTER_BH;
  return out.which != nullptr;
}

bool take_operand(const ZydisDecodedOperand& operand, Operand& out, Operation& of) {
  out.bytes = static_cast<std::uint8_t>(operand.size / 8);
  switch (operand.type) {
    case ZYDIS_OPERAND_TYPE_REGISTER:
      if (!take_register(operand, out)) return false;
      break;
    case ZYDIS_OPERAND_TYPE_IMMEDIATE:
      out.kind = Operand::Kind::Immediate;
      out.value = operand.imm.value.u;
      out.bytes = sizeof out.value;
      return true;
    case ZYDIS_OPERAND_TYPE_MEMORY:
      out.kind = Operand::Kind::Memory;
      of.memory = memory_of(operand, of.next());
      if (!of.memory) return false;
      if (operand.mem.type == ZYDIS_MEMOP_TYPE_AGEN) return true;
      break;
    default: return false;
  }
  return out.bytes == 1 || out.bytes == 2 || out.bytes == 4 || out.bytes == 8;
}

/// The operands as each effect has them; false where they are of another form.
bool take_operands(const Decoded& of, Operation& out) {
  std::array<Operand, 3> operands;
  const std::size_t count = std::min<std::size_t>(of.in.operand_count, operands.size());
  const bool is_fixed = of.in.operand_count_visible == 0;  // cdq and the like
  std::size_t taken = 0;
  for (std::size_t n = 0; n < count; ++n) {
    const ZydisDecodedOperand& operand = of.operands[n];
    if (!is_fixed && operand.visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN) continue;
    if (!take_operand(operand, operands[taken], out)) return false;
    ++taken;
  }
  out.to = operands[0];
  out.from = operands[1];
  out.third = operands[2];
  if (out.effect == Effect::Push) out.from = std::exchange(out.to, {});
  if (out.effect == Effect::Multiply) {
    if (taken < 2) return false;  // the form with rdx
    if (taken == 2) out.third = out.to;
  }
  const bool shifts = out.effect >= Effect::ShiftLeft && out.effect <= Effect::RotateRight;
  if (shifts && taken == 1) out.from = {Operand::Kind::Immediate, 8, false, nullptr, 1};
  for (Operand* const each : {&out.from, &out.third}) {
    if (each->kind == Operand::Kind::Immediate && out.to.bytes != 0) each->bytes = out.to.bytes;
  }
  const bool moves_stack = out.effect == Effect::Push || out.effect == Effect::Pop;
  return !moves_stack || std::max(out.to.bytes, out.from.bytes) == sizeof(std::uint64_t);
}

bool has_operands(Effect effect) {
  switch (effect) {
    case Effect::Unknown:
    case Effect::Nothing:
    case Effect::Leave:
    case Effect::Jump:
    case Effect::Call:
    case Effect::Return: return false;
    default: return true;
  }
}

}  // namespace

void take_effect(const Decoded& of, Operation& out) {
  constexpr ZydisInstructionAttributes kRepeats =
      ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE;
  if ((of.in.attributes & kRepeats) != 0) return;
  out.effect = effect_of(of.in, out);
  if (!has_operands(out.effect)) return;
  const auto memory = out.memory;
  if (take_operands(of, out)) {
    const bool is_conditional = out.effect == Effect::SetIf || out.effect == Effect::MoveIf;
    if (is_conditional) out.condition = of.in.opcode & 0x0f;
    return;
  }
  out.effect = Effect::Unknown;
  out.to = out.from = out.third = {};
  out.memory = memory;
}

}  // namespace ringside::disasm
