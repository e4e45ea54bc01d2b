// The instructions that can be evaluated. In this file, top to bottom: effects, operands, decoding.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "disasm/evaluation.h"
#include "disasm/zydis_operands.h"

namespace ringside::disasm {
namespace {

struct Named {
  ZydisMnemonic mnemonic;
  Operator opcode;
};
// The effects of these depend on their operands alone. Others are below.
constexpr std::array kOperators = {
    Named{ZYDIS_MNEMONIC_NOP, Operator::Nothing},
    Named{ZYDIS_MNEMONIC_ENDBR64, Operator::Nothing},
    Named{ZYDIS_MNEMONIC_MOV, Operator::Move},
    Named{ZYDIS_MNEMONIC_MOVZX, Operator::Move},
    Named{ZYDIS_MNEMONIC_MOVSX, Operator::SignExtend},
    Named{ZYDIS_MNEMONIC_MOVSXD, Operator::SignExtend},
    Named{ZYDIS_MNEMONIC_LEA, Operator::LoadAddress},
    Named{ZYDIS_MNEMONIC_XCHG, Operator::Exchange},
    Named{ZYDIS_MNEMONIC_PUSH, Operator::Push},
    Named{ZYDIS_MNEMONIC_POP, Operator::Pop},
    Named{ZYDIS_MNEMONIC_LEAVE, Operator::Leave},
    Named{ZYDIS_MNEMONIC_AND, Operator::And},
    Named{ZYDIS_MNEMONIC_OR, Operator::Or},
    Named{ZYDIS_MNEMONIC_XOR, Operator::Xor},
    Named{ZYDIS_MNEMONIC_TEST, Operator::Test},
    Named{ZYDIS_MNEMONIC_ADD, Operator::Add},
    Named{ZYDIS_MNEMONIC_ADC, Operator::AddCarry},
    Named{ZYDIS_MNEMONIC_SUB, Operator::Subtract},
    Named{ZYDIS_MNEMONIC_SBB, Operator::SubtractBorrow},
    Named{ZYDIS_MNEMONIC_CMP, Operator::Compare},
    Named{ZYDIS_MNEMONIC_INC, Operator::Increment},
    Named{ZYDIS_MNEMONIC_DEC, Operator::Decrement},
    Named{ZYDIS_MNEMONIC_NEG, Operator::Negate},
    Named{ZYDIS_MNEMONIC_NOT, Operator::Not},
    Named{ZYDIS_MNEMONIC_SHL, Operator::ShiftLeft},
    Named{ZYDIS_MNEMONIC_SHR, Operator::ShiftRight},
    Named{ZYDIS_MNEMONIC_SAR, Operator::ShiftArithmetic},
    Named{ZYDIS_MNEMONIC_ROL, Operator::RotateLeft},
    Named{ZYDIS_MNEMONIC_ROR, Operator::RotateRight},
    Named{ZYDIS_MNEMONIC_IMUL, Operator::Multiply},
    Named{ZYDIS_MNEMONIC_BT, Operator::BitTest},
    Named{ZYDIS_MNEMONIC_BSWAP, Operator::ByteSwap},
    Named{ZYDIS_MNEMONIC_POPCNT, Operator::CountOnes},
    Named{ZYDIS_MNEMONIC_CDQ, Operator::HighSignToData},
    Named{ZYDIS_MNEMONIC_CQO, Operator::HighSignToData},
    Named{ZYDIS_MNEMONIC_CWDE, Operator::SignExtend},
    Named{ZYDIS_MNEMONIC_CDQE, Operator::SignExtend},
};

/// The low nibble of the opcodes 0f 40..4f (cmov) and 0f 90..9f (set).
bool has_opcodes(const ZydisDecodedInstruction& in, std::uint8_t row) {
  return in.opcode_map == ZYDIS_OPCODE_MAP_0F && (in.opcode & 0xf0) == row;
}

/// Empty for what cannot be evaluated.
std::optional<Operator> opcode_of(const ZydisDecodedInstruction& in, const Instruction& summary) {
  switch (summary.flow) {
    case Flow::Call: return Operator::Call;
    case Flow::Jump: return Operator::Jump;
    case Flow::ConditionalJump:
      // jrcxz and loop depend on no flags; no compiler makes them.
      return summary.condition != arch::kNoCondition ? std::optional(Operator::Jump) : std::nullopt;
    case Flow::Return:
      return in.raw.imm[0].size == 0 ? std::optional(Operator::Return) : std::nullopt;
    case Flow::Next: break;
    default: return std::nullopt;
  }
  if (has_opcodes(in, 0x40)) return Operator::MoveIf;
  if (has_opcodes(in, 0x90)) return Operator::SetIf;
  const auto found = std::ranges::find(kOperators, in.mnemonic, &Named::mnemonic);
  return found != kOperators.end() ? std::optional(found->opcode) : std::nullopt;
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

bool take_operand(const ZydisDecodedOperand& operand, GuestVirt next, Operand& out) {
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
    case ZYDIS_OPERAND_TYPE_MEMORY: {
      if (operand.mem.type != ZYDIS_MEMOP_TYPE_MEM && operand.mem.type != ZYDIS_MEMOP_TYPE_AGEN) {
        return false;
      }
      ZydisDecodedOperand place = operand;
      place.mem.type = ZYDIS_MEMOP_TYPE_MEM;
      const auto memory = memory_of(place, next);
      if (!memory) return false;
      out.kind = Operand::Kind::Memory;
      out.memory = *memory;
      if (operand.mem.type == ZYDIS_MEMOP_TYPE_AGEN) {
        out.memory.segment_base = nullptr;  // lea adds no segment
        return true;
      }
      break;
    }
    default: return false;
  }
  return out.bytes == 1 || out.bytes == 2 || out.bytes == 4 || out.bytes == 8;
}

/// The operands as each opcode has them; false where they are of another form.
bool take_operands(const Decoded& of, GuestVirt next, Evaluable& out) {
  std::array<Operand, 3> operands;
  const std::size_t count = std::min<std::size_t>(of.in.operand_count, operands.size());
  const bool is_fixed = of.in.operand_count_visible == 0;  // cdq and the like
  std::size_t taken = 0;
  for (std::size_t n = 0; n < count; ++n) {
    const ZydisDecodedOperand& operand = of.operands[n];
    if (!is_fixed && operand.visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN) continue;
    if (!take_operand(operand, next, operands[taken])) return false;
    ++taken;
  }
  out.to = operands[0];
  out.from = operands[1];
  out.third = operands[2];
  if (out.opcode == Operator::Push) out.from = std::exchange(out.to, {});
  if (out.opcode == Operator::Multiply) {
    if (taken < 2) return false;  // the form with rdx
    if (taken == 2) out.third = out.to;
  }
  const bool shifts = out.opcode >= Operator::ShiftLeft && out.opcode <= Operator::RotateRight;
  if (shifts && taken == 1) out.from = {Operand::Kind::Immediate, 8, false, nullptr, {}, 1};
  for (Operand* const each : {&out.from, &out.third}) {
    if (each->kind == Operand::Kind::Immediate && out.to.bytes != 0) each->bytes = out.to.bytes;
  }
  const bool moves_stack = out.opcode == Operator::Push || out.opcode == Operator::Pop;
  return !moves_stack || std::max(out.to.bytes, out.from.bytes) == sizeof(std::uint64_t);
}

bool has_operands(Operator opcode) {
  switch (opcode) {
    case Operator::Nothing:
    case Operator::Leave:
    case Operator::Jump:
    case Operator::Call:
    case Operator::Return: return false;
    default: return true;
  }
}

std::optional<Evaluable> evaluable(const Decoded& of, GuestVirt address) {
  const Instruction summary = summarize(of.in, address);
  constexpr ZydisInstructionAttributes kRepeats =
      ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE;
  if ((of.in.attributes & kRepeats) != 0) return std::nullopt;
  const auto opcode = opcode_of(of.in, summary);
  if (!opcode) return std::nullopt;
  Evaluable out{.address = address,
                .length = summary.length,
                .opcode = *opcode,
                .condition = summary.condition,
                .target = summary.target};
  if (*opcode == Operator::SetIf || *opcode == Operator::MoveIf)
    out.condition = of.in.opcode & 0x0f;
  if (has_operands(*opcode) && !take_operands(of, out.next(), out)) return std::nullopt;
  return out;
}

}  // namespace

Result<Evaluable> decode_evaluable(std::span<const std::byte> bytes, GuestVirt address) {
  const auto decoded = decode_all(bytes);
  if (!decoded) {
    return fail(ErrorCode::Unsupported,
                fmt::format("the text at {:#x} does not decode", address.raw()));
  }
  if (auto out = evaluable(*decoded, address)) return *out;
  return fail(ErrorCode::Unsupported, fmt::format("\"{}\"", assembly(bytes, address)));
}

}  // namespace ringside::disasm
