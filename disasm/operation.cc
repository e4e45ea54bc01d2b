// Operations. In this file, top to bottom: names, classes, what an operation is asked, text.
#include <algorithm>
#include <array>

#include "disasm/decoders.h"

namespace ringside::disasm {
namespace {

constexpr std::array<std::string_view, kInstructionClasses> kNames = {
    "string", "lock", "call", "ret", "jmp", "jcc", "sti", "cli", "store", "load", "other"};

/// Instructions that name memory and do not access it, or only hint at it; and xlat, which adds a
/// part of a register.
bool only_names_memory(const ZydisDecodedInstruction& in) {
  switch (in.meta.category) {
    case ZYDIS_CATEGORY_NOP:
    case ZYDIS_CATEGORY_WIDENOP:
    case ZYDIS_CATEGORY_PREFETCH:
    case ZYDIS_CATEGORY_PREFETCHWT1:
    case ZYDIS_CATEGORY_CLFLUSHOPT:
    case ZYDIS_CATEGORY_CLWB:
    case ZYDIS_CATEGORY_CLDEMOTE: return true;
    default: break;
  }
  switch (in.mnemonic) {
    case ZYDIS_MNEMONIC_CLFLUSH:
    case ZYDIS_MNEMONIC_INVLPG:
    case ZYDIS_MNEMONIC_XLAT: return true;
    default: return false;
  }
}

bool reads(const ZydisDecodedOperand& operand) {
  return (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
}
bool writes(const ZydisDecodedOperand& operand) {
  return (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
}
bool is_memory(const ZydisDecodedOperand& operand) {
  return operand.type == ZYDIS_OPERAND_TYPE_MEMORY && operand.mem.type == ZYDIS_MEMOP_TYPE_MEM;
}
bool is_named(const ZydisDecodedOperand& operand) {
  return operand.visibility != ZYDIS_OPERAND_VISIBILITY_HIDDEN;
}

void take_memory(Operation& out, const ZydisDecodedOperand& operand, GuestVirt next) {
  out.memory = memory_of(operand, next);
  out.bytes = static_cast<std::uint16_t>(operand.size / 8);
}

/// The operand that the instruction names, else the stack.
const ZydisDecodedOperand* accessed(const Decoded& of) {
  const auto all = of.all();
  if (only_names_memory(of.in)) return nullptr;
  const auto named = std::ranges::find_if(
      all, [](const auto& operand) { return is_memory(operand) && is_named(operand); });
  if (named != all.end()) return &*named;
  const auto hidden = std::ranges::find_if(all, is_memory);
  return hidden != all.end() ? &*hidden : nullptr;
}

/// A push writes below where the stack pointer is.
void move_down_for_push(Operation& out) {
  if (out.memory && out.memory->base == arch::kStackPointer) out.memory->displacement -= out.bytes;
}

/// The register that a mov to memory stores; null for a part of one, and for a number.
arch::Register source_of(const Decoded& of) {
  const ZydisDecodedOperand& source = of.operands[1];
  const bool is_whole = source.type == ZYDIS_OPERAND_TYPE_REGISTER && source.size == 64;
  return is_whole ? register_of(source.reg.value) : nullptr;
}

void take_access(Operation& out, const Decoded& of, GuestVirt next) {
  const ZydisDecodedOperand* const operand = accessed(of);
  if (operand == nullptr) return;
  const bool is_store = writes(*operand);
  if (!is_store && !reads(*operand)) return;
  take_memory(out, *operand, next);
  const bool locks = (of.in.attributes & ZYDIS_ATTRIB_HAS_LOCK) != 0 ||
                     (of.in.mnemonic == ZYDIS_MNEMONIC_XCHG && is_named(*operand));
  out.kind = locks ? InstructionClass::Lock
                   : (is_store ? InstructionClass::Store : InstructionClass::Load);
  if (is_store && !is_named(*operand)) move_down_for_push(out);
  if (of.in.mnemonic == ZYDIS_MNEMONIC_MOV && is_store) out.stored = source_of(of);
}

void take_string(Operation& out, const Decoded& of, GuestVirt next) {
  out.kind = InstructionClass::String;
  constexpr ZydisInstructionAttributes kRepeats =
      ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE;
  out.repeats = (of.in.attributes & kRepeats) != 0;
  const auto all = of.all();
  const auto operand = std::ranges::find_if(all, is_memory);
  if (operand != all.end()) take_memory(out, *operand, next);
}

/// Where an indirect branch finds its target.
void take_target(Operation& out, const Decoded& of, GuestVirt next) {
  const ZydisDecodedOperand& operand = of.operands.front();
  if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER)
    out.target_register = register_of(operand.reg.value);
  if (is_memory(operand)) take_memory(out, operand, next);
}

/// Of 32-bit forms of loop nobody asks: no compiler makes them.
CountJump counts_of(const ZydisDecodedInstruction& in) {
  switch (in.mnemonic) {
    case ZYDIS_MNEMONIC_JRCXZ: return CountJump::Zero;
    case ZYDIS_MNEMONIC_JECXZ: return CountJump::LowZero;
    case ZYDIS_MNEMONIC_LOOP: return CountJump::Loop;
    case ZYDIS_MNEMONIC_LOOPE: return CountJump::LoopEqual;
    case ZYDIS_MNEMONIC_LOOPNE: return CountJump::LoopNotEqual;
    default: return CountJump::None;
  }
}

bool is_string(const ZydisDecodedInstruction& in) {
  return in.meta.category == ZYDIS_CATEGORY_STRINGOP ||
         in.meta.category == ZYDIS_CATEGORY_IOSTRINGOP;
}

/// The class of an instruction that changes the flow or the interrupt flag; empty for all others.
std::optional<InstructionClass> class_by_flow(const Operation& of,
                                              const ZydisDecodedInstruction& in) {
  switch (of.flow) {
    case Flow::Call:
    case Flow::IndirectCall: return InstructionClass::Call;
    case Flow::Jump:
    case Flow::IndirectJump:
    case Flow::TableJump: return InstructionClass::Jmp;
    case Flow::ConditionalJump: return InstructionClass::Jcc;
    case Flow::Return: return InstructionClass::Ret;
    case Flow::Stop:
    case Flow::Other: return InstructionClass::Other;
    case Flow::Next: break;
  }
  if (in.mnemonic == ZYDIS_MNEMONIC_STI) return InstructionClass::Sti;
  if (in.mnemonic == ZYDIS_MNEMONIC_CLI) return InstructionClass::Cli;
  return std::nullopt;
}

bool is_indirect(Flow flow) {
  return flow == Flow::IndirectCall || flow == Flow::IndirectJump || flow == Flow::TableJump;
}

bool does_nothing(const ZydisDecodedInstruction& in) {
  return in.mnemonic == ZYDIS_MNEMONIC_NOP || in.mnemonic == ZYDIS_MNEMONIC_ENDBR64;
}

}  // namespace

std::string_view name_of(InstructionClass kind) {
  return kNames[static_cast<std::size_t>(kind)];
}

std::optional<InstructionClass> class_named(std::string_view name) {
  const auto at = std::ranges::find(kNames, name);
  if (at == kNames.end()) return std::nullopt;
  return static_cast<InstructionClass>(at - kNames.begin());
}

std::uint64_t effective_address(const MemoryOperand& operand, const Registers& registers) {
  const auto value = [&](arch::Register which) {
    return which != nullptr ? registers.*which : std::uint64_t{0};
  };
  std::uint64_t sum = value(operand.base) + value(operand.index) * operand.scale +
                      static_cast<std::uint64_t>(operand.displacement);
  if (operand.is_32_bit) sum &= UINT32_MAX;
  return value(operand.segment_base) + sum;
}

bool Operation::adds_to_memory() const {
  constexpr std::uint8_t kWord = 8;
  const bool adds = effect == Effect::Add || effect == Effect::Subtract ||
                    effect == Effect::Increment || effect == Effect::Decrement;
  return adds && kind != InstructionClass::Lock && to.kind == Operand::Kind::Memory &&
         to.bytes == kWord;
}

std::uint64_t Operation::added(const Registers& registers) const {
  if (effect == Effect::Increment) return 1;
  if (effect == Effect::Decrement) return ~std::uint64_t{0};
  const std::uint64_t value =
      from.kind == Operand::Kind::Register ? registers.*from.which : from.value;
  return effect == Effect::Subtract ? 0 - value : value;
}

std::optional<Operation> decode_operation(std::span<const std::byte> bytes, GuestVirt address) {
  const auto decoded = decode_all(bytes);
  if (!decoded) return std::nullopt;
  Operation out;
  static_cast<Instruction&>(out) = summarize(decoded->in, address);
  out.address = address;
  out.does_nothing = does_nothing(decoded->in);
  out.counts = counts_of(decoded->in);
  if (is_string(decoded->in)) {
    take_string(out, *decoded, out.next());
    return out;
  }
  if (const auto kind = class_by_flow(out, decoded->in)) {
    out.kind = *kind;
    if (is_indirect(out.flow)) take_target(out, *decoded, out.next());
  } else {
    take_access(out, *decoded, out.next());
  }
  take_effect(*decoded, out);
  return out;
}

std::string assembly(std::span<const std::byte> bytes, GuestVirt address) {
  static const ZydisFormatter formatter = [] {
    ZydisFormatter fresh;
    ZydisFormatterInit(&fresh, ZYDIS_FORMATTER_STYLE_INTEL);
    ZydisFormatterSetProperty(&fresh, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
    ZydisFormatterSetProperty(&fresh, ZYDIS_FORMATTER_PROP_DISP_PADDING, ZYDIS_PADDING_DISABLED);
    return fresh;
  }();
  const auto decoded = decode_all(bytes);
  if (!decoded) return {};
  std::array<char, 256> text{};
  const auto status = ZydisFormatterFormatInstruction(
      &formatter, &decoded->in, decoded->operands.data(), decoded->in.operand_count_visible,
      text.data(), text.size(), address.raw(), nullptr);
  return ZYAN_SUCCESS(status) ? std::string(text.data()) : std::string();
}

}  // namespace ringside::disasm
