// The effects of an instruction: its class, the memory that it names, where it leads, and its text.
// For probes that stand on any instruction; code that only follows a path needs decoder.h alone.
// Fire context: effective_address() yes; everything else no.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "disasm/decoder.h"
#include "vmm/arch/arch.h"
#include "vmm/base/address.h"

namespace ringside::disasm {

/// Each instruction has one class: of several that fit, the first of this order. Load and Store go
/// by the operand that the instruction names; only where it names none, by the stack (push, pop).
/// An instruction that reads and writes one place is a Store.
enum class InstructionClass : std::uint8_t {
  String,  // movs, stos, lods, cmps, scas, ins, outs, with rep or without
  Lock,    // a lock prefix, or xchg with memory, which locks by itself
  Call,
  Ret,
  Jmp,
  Jcc,  // also jrcxz and loop
  Sti,
  Cli,
  Store,
  Load,
  Other,
};
inline constexpr std::size_t kInstructionClasses = 11;
/// "call", "jcc"...
std::string_view name_of(InstructionClass kind);
std::optional<InstructionClass> class_named(std::string_view name);

/// Memory by registers. A null one adds nothing.
struct MemoryOperand {
  arch::Register base = nullptr, index = nullptr;
  arch::Register segment_base = nullptr;  // fs_base or gs_base
  std::uint8_t scale = 1;
  bool is_32_bit = false;         // the sum is cut to 32 bits before the segment's base is added
  std::int64_t displacement = 0;  // of a rip-relative operand: the address itself

  bool operator==(const MemoryOperand&) const = default;
};
std::uint64_t effective_address(const MemoryOperand& operand, const Registers& registers);

/// The test of a conditional jump that depends on rcx.
enum class CountJump : std::uint8_t { None, Zero, LowZero, Loop, LoopEqual, LoopNotEqual };

struct Operation {
  Instruction instruction;
  InstructionClass kind = InstructionClass::Other;
  /// Of String, Lock, Load and Store what they work on (of movs and cmps: the first operand); of an
  /// indirect Call or Jmp where the target is read from. Empty where registers do not say it.
  std::optional<MemoryOperand> memory;
  std::uint16_t bytes = 0;          // that one access has; 0: unknown
  arch::Register target = nullptr;  // of an indirect Call or Jmp: the register that says where to
  arch::Register stored = nullptr;  // of a mov to memory: the register that it stores all of
  CountJump counts = CountJump::None;
  bool repeats = false;       // a String with rep: as often as rcx says
  bool does_nothing = false;  // a nop, or a landing pad
};

/// Decodes the instruction at the start of `bytes` as if it lay at `address`. Empty where decode()
/// is.
std::optional<Operation> decode_operation(std::span<const std::byte> bytes, GuestVirt address);

/// The text of the instruction in Intel's syntax, which says the size of every access; empty when
/// it does not decode.
std::string assembly(std::span<const std::byte> bytes, GuestVirt address);

}  // namespace ringside::disasm
