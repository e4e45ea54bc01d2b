// Displacing one instruction: the same effect from another place.
// In this file, top to bottom: what is refused and why, a small emitter, one function for each
// kind of instruction, relocate().
// The size of the result does not depend on where the slot lies (every jump has 32 bits), so a
// caller may relocate once to learn the size and again for the final place.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "disasm/decoders.h"
#include "vmm/arch/x86_64/instructions.h"

namespace ringside::disasm {
namespace {

/// Why an instruction cannot run elsewhere, or empty.
std::string_view refusal(const ZydisDecodedInstruction& in) {
  switch (in.mnemonic) {
    case ZYDIS_MNEMONIC_INT3: return "a breakpoint of the guest's own";
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2: return "the kernel looks up the address of its invalid opcode";
    case ZYDIS_MNEMONIC_ENDBR64:
    case ZYDIS_MNEMONIC_ENDBR32: return "indirect branches must land on it";
    case ZYDIS_MNEMONIC_HLT:
    case ZYDIS_MNEMONIC_MONITOR:
    case ZYDIS_MNEMONIC_MONITORX:
    case ZYDIS_MNEMONIC_MWAIT:
    case ZYDIS_MNEMONIC_MWAITX:
    case ZYDIS_MNEMONIC_UMONITOR:
    case ZYDIS_MNEMONIC_UMWAIT: return "a trap before it could lose a wake-up";
    case ZYDIS_MNEMONIC_SWAPGS:
    case ZYDIS_MNEMONIC_WRGSBASE: return "the per-cpu base changes around it";
    case ZYDIS_MNEMONIC_VMCALL:
    case ZYDIS_MNEMONIC_VMMCALL: return "the hypervisor may patch it";
    case ZYDIS_MNEMONIC_VMLAUNCH:
    case ZYDIS_MNEMONIC_VMRESUME:
    case ZYDIS_MNEMONIC_VMRUN: return "it enters another machine";
    default: return {};
  }
}

/// mov to ss and pop ss hold off interrupts and traps for one instruction, like sti.
bool loads_stack_segment(const ZydisDecodedInstruction& in) {
  return in.mnemonic == ZYDIS_MNEMONIC_MOV && in.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
         in.opcode == 0x8e && in.raw.modrm.reg == 2;
}

class Emitter {
 public:
  explicit Emitter(GuestVirt slot) : slot_(slot) { code_.reserve(kMaxSlotBytes); }

  void byte(unsigned value) { code_.push_back(static_cast<std::byte>(value)); }
  void bytes(std::span<const std::byte> more) {
    code_.insert(code_.end(), more.begin(), more.end());
  }
  void imm32(std::int32_t value) {
    std::byte raw[4];
    std::memcpy(raw, &value, 4);
    bytes(raw);
  }
  /// A rel32 that reaches `target` when `trailing` more bytes of the instruction follow it.
  Result<void> rel32(GuestVirt target, unsigned trailing = 0) {
    const GuestVirt next = slot_.wrapping_add(code_.size() + 4 + trailing);
    const auto distance = static_cast<std::int64_t>(target.offset_from(next));
    if (distance != static_cast<std::int32_t>(distance)) {
      return fail(ErrorCode::Unsupported,
                  fmt::format("{:#x} is more than 2 GiB from its slot", target.raw()));
    }
    imm32(static_cast<std::int32_t>(distance));
    return {};
  }
  Result<void> jump(GuestVirt target) {
    byte(std::to_integer<unsigned>(arch::kNearJump));
    return rel32(target);
  }
  /// The address that a displaced call must leave on the stack: the original one. If it does not
  /// fit a push, its distance tells it: push %rax; lea next(%rip), %rax; xchg %rax, (%rsp). That
  /// leaves all registers and flags, and writes no other word than the call itself.
  Result<void> push_return_address(GuestVirt next) {
    const auto value = static_cast<std::int64_t>(next.raw());
    if (value == static_cast<std::int32_t>(value)) {
      byte(0x68);
      imm32(static_cast<std::int32_t>(value));
      return {};
    }
    for (const unsigned each : {0x50u, 0x48u, 0x8du, 0x05u}) byte(each);
    TRY(rel32(next));
    for (const unsigned each : {0x48u, 0x87u, 0x04u, 0x24u}) byte(each);
    return {};
  }
  std::vector<std::byte> take() { return std::move(code_); }

 private:
  GuestVirt slot_;
  std::vector<std::byte> code_;
};

/// The instruction with its rip-relative displacement, if any, rewritten for the slot. With
/// `as_jump`, a call through ff /2 becomes the jump ff /4 with the same operand.
enum class Form : std::uint8_t { Same, CallAsJump };
Result<void> emit_copy(Emitter& out, std::span<const std::byte> bytes,
                       const ZydisDecodedInstruction& in, const Instruction& facts, GuestVirt next,
                       Form form) {
  std::byte copy[ZYDIS_MAX_INSTRUCTION_LENGTH];
  std::memcpy(copy, bytes.data(), in.length);
  if (form == Form::CallAsJump) {
    auto& modrm = copy[in.raw.modrm.offset];
    modrm = (modrm & std::byte{0xc7}) | std::byte{4 << 3};
  }
  const std::span<const std::byte> all(copy, in.length);
  if (!facts.rip_relative) {
    out.bytes(all);
    return {};
  }
  if (in.address_width != 64) return fail(ErrorCode::Unsupported, "an eip-relative operand");
  const unsigned at = in.raw.disp.offset;
  const GuestVirt operand = next.wrapping_add(static_cast<std::uint64_t>(in.raw.disp.value));
  out.bytes(all.first(at));
  TRY(out.rel32(operand, in.length - at - 4));
  out.bytes(all.subspan(at + 4));
  return {};
}

Result<void> emit_conditional(Emitter& out, const ZydisDecodedInstruction& in,
                              const Instruction& facts, GuestVirt next) {
  if (facts.condition != arch::kNoCondition) {
    out.byte(0x0f);
    out.byte(0x80u | facts.condition);
    TRY(out.rel32(facts.target));
    return out.jump(next);
  }
  // jrcxz and loop know only 8-bit distances: hop over the jump to the next instruction.
  constexpr unsigned kJumpBytes = 5;
  if (in.address_width == 32) out.byte(0x67);
  out.byte(in.opcode);
  out.byte(kJumpBytes);
  TRY(out.jump(next));
  return out.jump(facts.target);
}

Result<void> emit_indirect_call(Emitter& out, std::span<const std::byte> bytes,
                                const ZydisDecodedInstruction& in, const Instruction& facts,
                                GuestVirt next) {
  const auto& raw = in.raw;
  const bool memory_with_sib = raw.modrm.mod != 3 && raw.modrm.rm == 4;
  const bool rsp_operand = (raw.modrm.mod == 3 && raw.modrm.rm == 4 && raw.rex.B == 0) ||
                           (memory_with_sib && raw.sib.base == 4 && raw.rex.B == 0);
  if (rsp_operand) {
    return fail(ErrorCode::Unsupported, "a call through the stack pointer, which its push moves");
  }
  TRY(out.push_return_address(next));
  return emit_copy(out, bytes, in, facts, next, Form::CallAsJump);
}

Result<void> emit(Emitter& out, std::span<const std::byte> bytes, const ZydisDecodedInstruction& in,
                  const Instruction& facts, GuestVirt next) {
  switch (facts.flow) {
    case Flow::Next: TRY(emit_copy(out, bytes, in, facts, next, Form::Same)); return out.jump(next);
    case Flow::Call: TRY(out.push_return_address(next)); return out.jump(facts.target);
    case Flow::IndirectCall: return emit_indirect_call(out, bytes, in, facts, next);
    case Flow::Jump: return out.jump(facts.target);
    case Flow::ConditionalJump: return emit_conditional(out, in, facts, next);
    case Flow::IndirectJump:
    case Flow::TableJump:
    case Flow::Return: return emit_copy(out, bytes, in, facts, next, Form::Same);
    case Flow::Stop:
    case Flow::Other: break;
  }
  return fail(ErrorCode::Unsupported, "it changes the processor's mode or ends here");
}

/// Why an instruction cannot be displaced, or nothing.
Result<void> check(const ZydisDecodedInstruction& in, const Instruction& facts) {
  if (const auto why = refusal(in); !why.empty()) {
    return fail(ErrorCode::Unsupported,
                fmt::format("{}: {}", ZydisMnemonicGetString(in.mnemonic), why));
  }
  if (loads_stack_segment(in)) {
    return fail(ErrorCode::Unsupported, "mov to ss: interrupts stay off for one instruction");
  }
  const bool branches = facts.flow != Flow::Next;
  if (branches && (in.attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE) != 0) {
    return fail(ErrorCode::Unsupported, "a branch with an operand-size prefix");
  }
  return {};
}

constexpr unsigned kReturn = 0xc3;

bool is_stack_pointer(ZydisRegister which) {
  return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, which) == ZYDIS_REGISTER_RSP;
}

/// Also where its encoding does not name it, as a pop does not.
bool uses_stack(const Decoded& of) {
  return std::ranges::any_of(of.all(), [](const ZydisDecodedOperand& operand) {
    if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER) return is_stack_pointer(operand.reg.value);
    if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY) return false;
    return is_stack_pointer(operand.mem.base) || is_stack_pointer(operand.mem.index);
  });
}

/// The number of the register that a push of eight bytes pushes; not of the stack pointer.
std::optional<unsigned> pushed_register(const Decoded& of) {
  const ZydisDecodedInstruction& in = of.in;
  const bool pushes = in.mnemonic == ZYDIS_MNEMONIC_PUSH && in.operand_width == 64 &&
                      in.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && (in.opcode & 0xf8) == 0x50;
  if (!pushes || is_stack_pointer(of.operands[0].reg.value)) return std::nullopt;
  return static_cast<unsigned>(ZydisRegisterGetId(of.operands[0].reg.value));
}

/// Pushes the register below the return address: push (%rsp); mov %register, 8(%rsp); ret.
constexpr std::uint8_t kPushBelowFirst = 3, kPushBelow = 9;
void emit_push_below(Emitter& out, unsigned which) {
  for (const unsigned byte : {0xffu, 0x34u, 0x24u}) out.byte(byte);
  for (const unsigned byte :
       {which < 8 ? 0x48u : 0x4cu, 0x89u, 0x44u | (which & 7) << 3, 0x24u, 8u})
    out.byte(byte);
  out.byte(kReturn);
}

tl::unexpected<Error> unknown() {
  return fail(ErrorCode::Unsupported, "not an instruction that the decoder knows");
}

}  // namespace

Result<std::vector<std::byte>> relocate(std::span<const std::byte> bytes, GuestVirt from,
                                        GuestVirt slot) {
  const auto in = decode_raw(bytes);
  if (!in) return unknown();
  const Instruction facts = summarize(*in, from);
  TRY(check(*in, facts));
  Emitter out(slot);
  TRY(emit(out, bytes, *in, facts, from.wrapping_add(in->length)));
  return out.take();
}

std::optional<ReturningCode> relocate_with_return(std::span<const std::byte> bytes, GuestVirt from,
                                                  GuestVirt slot) {
  const auto decoded = decode_all(bytes);
  if (!decoded) return std::nullopt;
  const ZydisDecodedInstruction& in = decoded->in;
  const Instruction facts = summarize(in, from);
  if (facts.flow != Flow::Next || facts.is_sti || !check(in, facts)) return std::nullopt;
  Emitter out(slot);
  ReturningCode code;
  if (const auto pushed = pushed_register(*decoded)) {
    emit_push_below(out, *pushed);
    code.parts = {{{kPushBelowFirst, 1, in.length}, {kPushBelow - kPushBelowFirst, 2, in.length}}};
  } else {
    if (uses_stack(*decoded)) return std::nullopt;
    if (!emit_copy(out, bytes, in, facts, from.wrapping_add(in.length), Form::Same)) {
      return std::nullopt;
    }
    out.byte(kReturn);
    code.parts = {{{in.length, 1, in.length}, {1, 1, 0}}};
  }
  code.bytes = out.take();
  return code;
}

Result<std::vector<std::byte>> relocate_run(std::span<const std::byte> bytes, GuestVirt from,
                                            GuestVirt slot) {
  Emitter out(slot);
  for (std::size_t at = 0; at < bytes.size();) {
    const auto rest = bytes.subspan(at);
    const GuestVirt here = from.wrapping_add(at);
    const auto in = decode_raw(rest);
    if (!in) return unknown();
    const Instruction facts = summarize(*in, here);
    TRY(check(*in, facts));
    at += in->length;
    const GuestVirt next = from.wrapping_add(at);
    if (at == bytes.size()) {
      TRY(emit(out, rest, *in, facts, next));
    } else if (facts.flow == Flow::Next && !facts.is_sti) {
      TRY(emit_copy(out, rest, *in, facts, next, Form::Same));
    } else {
      return fail(ErrorCode::Unsupported, "a branch, or sti, before the last instruction");
    }
  }
  return out.take();
}

}  // namespace ringside::disasm
