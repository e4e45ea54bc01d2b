// In this file: reading code, registers by number, flags, one function a family of instructions.
#include "vmm/kvm/vcpu/emulate.h"

#include <bit>
#include <cstring>

#include "vmm/arch/arch.h"

namespace ringside::vmm::kvm {
namespace {

using arch::kAdjustFlag, arch::kTrapFlag, arch::kResumeFlag, arch::kVmFlag;
using arch::kCarryFlag, arch::kParityFlag, arch::kZeroFlag, arch::kSignFlag, arch::kOverflowFlag;

/// Bytes that read as 0 after the end; no instruction here begins with 0.
class Code {
 public:
  explicit Code(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint8_t operator[](std::size_t at) const {
    return at < bytes_.size() ? std::to_integer<std::uint8_t>(bytes_[at]) : 0;
  }
  bool has(std::size_t size) const { return size <= bytes_.size(); }
  std::int32_t int32(std::size_t at) const {
    std::int32_t value = 0;
    if (at + 4 <= bytes_.size()) std::memcpy(&value, &bytes_[at], 4);
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
};

std::uint64_t& register_of(Registers& r, unsigned number) {
  return r.*arch::kByEncoding[number % arch::kByEncoding.size()];
}

Emulated advance(Registers& r, std::size_t length) {
  r.rip += length;
  return Emulated::Done;
}

/// The length of a nop in any of its forms: 90, 0f 1f /0 and endbr64, with 66 before them; else 0.
std::size_t nop_length(const Code& code) {
  std::size_t at = 0;
  while (at < 4 && code[at] == 0x66) ++at;
  if (code[at] == 0x2e && code[at + 1] == 0x0f) ++at;
  if (code[at] == 0x90) return at + 1;
  if (code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e && code[3] == 0xfa) return 4;
  if (code[at] != 0x0f || code[at + 1] != 0x1f) return 0;
  const std::uint8_t modrm = code[at + 2];
  if ((modrm >> 3 & 7) != 0) return 0;
  const unsigned mode = modrm >> 6, rm = modrm & 7;
  const bool has_sib = mode != 3 && rm == 4;
  const bool disp32 = mode == 2 || (mode == 0 && (rm == 5 || (has_sib && (code[at + 3] & 7) == 5)));
  return at + 3 + (has_sib ? 1 : 0) + (mode == 1 ? 1 : 0) + (disp32 ? 4 : 0);
}

bool push(Registers& r, std::uint64_t value, VcpuStack& stack) {
  if (!stack.store(GuestVirt(r.rsp - 8), value)) return false;
  r.rsp -= 8;
  return true;
}

std::uint64_t flags_of(std::uint64_t flags, std::uint64_t a, std::uint64_t b, std::uint64_t result,
                       bool subtract) {
  const std::uint64_t carries =
      subtract ? (~a & b) | (~(a ^ b) & result) : (a & b) | ((a | b) & ~result);
  const std::uint64_t overflow = subtract ? (a ^ b) & (a ^ result) : ~(a ^ b) & (a ^ result);
  flags &= ~(kCarryFlag | kParityFlag | kAdjustFlag | kZeroFlag | kSignFlag | kOverflowFlag);
  if (carries >> 63 != 0) flags |= kCarryFlag;
  if (std::popcount(result & 0xff) % 2 == 0) flags |= kParityFlag;
  if ((carries >> 3 & 1) != 0) flags |= kAdjustFlag;
  if (result == 0) flags |= kZeroFlag;
  if (result >> 63 != 0) flags |= kSignFlag;
  if (overflow >> 63 != 0) flags |= kOverflowFlag;
  return flags;
}

/// add rsp, imm and sub rsp, imm: 48 83 /0 or /5 ib, 48 81 /0 or /5 id.
Emulated adjust_stack(const Code& code, Registers& r) {
  const bool wide = code[1] == 0x81;
  const std::size_t length = wide ? 7 : 4;
  if (!code.has(length) || (code[2] != 0xec && code[2] != 0xc4)) return Emulated::NotSimple;
  const bool subtract = code[2] == 0xec;
  const std::int64_t immediate = wide ? code.int32(3) : static_cast<std::int8_t>(code[3]);
  const auto operand = static_cast<std::uint64_t>(immediate);
  const std::uint64_t result = subtract ? r.rsp - operand : r.rsp + operand;
  r.rflags = flags_of(r.rflags, r.rsp, operand, result, subtract);
  r.rsp = result;
  return advance(r, length);
}

/// mov r64, r64 in both its encodings.
Emulated move(const Code& code, Registers& r) {
  const std::uint8_t modrm = code[2];
  if (!code.has(3) || modrm >> 6 != 3) return Emulated::NotSimple;
  const unsigned reg = (modrm >> 3 & 7) | (code[0] & 4) << 1, rm = (modrm & 7) | (code[0] & 1) << 3;
  if (code[1] == 0x89) register_of(r, rm) = register_of(r, reg);
  if (code[1] == 0x8b) register_of(r, reg) = register_of(r, rm);
  return advance(r, 3);
}

Emulated with_rex(const Code& code, Registers& r, VcpuStack& stack) {
  const std::uint8_t opcode = code[1];
  if (opcode >= 0x50 && opcode < 0x58) {  // push
    const unsigned number = (opcode & 7u) | (code[0] & 1u) << 3;
    return push(r, register_of(r, number), stack) ? advance(r, 2) : Emulated::NotSimple;
  }
  if ((code[0] & 8) == 0) return Emulated::NotSimple;
  if (opcode == 0x89 || opcode == 0x8b) return move(code, r);
  if (code[0] == 0x48 && (opcode == 0x83 || opcode == 0x81)) return adjust_stack(code, r);
  return Emulated::NotSimple;
}

}  // namespace

Emulated emulate(std::span<const std::byte> bytes, Registers& r, VcpuStack& stack) {
  const Code code(bytes);
  // A guest that steps itself must get its trap.
  if (bytes.empty() || (r.rflags & kTrapFlag) != 0) return Emulated::NotSimple;
  if (const std::size_t length = nop_length(code); length != 0 && code.has(length)) {
    return advance(r, length);
  }
  const std::uint8_t opcode = code[0];
  if (opcode >= 0x50 && opcode < 0x58) {
    return push(r, register_of(r, opcode & 7), stack) ? advance(r, 1) : Emulated::NotSimple;
  }
  if (opcode >= 0x40 && opcode < 0x50) return with_rex(code, r, stack);
  if (opcode == 0x9c) {  // pushfq; a single step would push its own trap flag
    return push(r, r.rflags & ~(kResumeFlag | kVmFlag), stack) ? advance(r, 1)
                                                               : Emulated::NotSimple;
  }
  if (opcode == 0xc3) {
    const auto target = stack.load(GuestVirt(r.rsp));
    if (!target) return Emulated::NotSimple;
    r.rip = *target;
    r.rsp += 8;
    return Emulated::Done;
  }
  if (std::byte{opcode} == arch::kHalt) {
    r.rip += 1;
    return Emulated::Halts;
  }
  return Emulated::NotSimple;
}

}  // namespace ringside::vmm::kvm
