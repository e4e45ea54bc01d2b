// The decoder of x86-64 instructions: a reader decodes an instruction and asks it. Also moves an
// instruction to another place. No type of a decoder library shows here.
// decode() says how long an instruction is and where it leads. decode_operation() also says what it
// works on and what it does, which takes three to ten times as long: code that only follows a path,
// such as the listing of a kernel's probes, does without.
// Used by providers. To run instructions on the host: evaluation.h.
// Fire context: decode() and what an instruction is asked yes; everything else no.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vmm/arch/arch.h"
#include "vmm/base/address.h"
#include "vmm/base/result.h"

namespace ringside::disasm {

enum class Flow : std::uint8_t {
  Next,  // falls through
  Call,  // direct call: target
  IndirectCall,
  Jump,             // direct jump: target
  IndirectJump,     // jmp reg or jmp [mem]
  TableJump,        // jmp [table + index * 8]: stays inside the function
  ConditionalJump,  // jcc, jrcxz, loop: target
  Return,           // ret, ret imm16
  Stop,             // ud2, int3: nothing runs after it
  Other,            // iret, sysret, syscall, int n: not displaceable
};

struct Instruction {
  std::uint8_t length = 0;
  Flow flow = Flow::Next;
  GuestVirt target;  // Call, Jump, ConditionalJump; TableJump: of the table
  /// Of a ConditionalJump by jcc; jrcxz and loop depend on no flags. Of an Operation also of a
  /// SetIf and a MoveIf.
  arch::Condition condition = arch::kNoCondition;
  bool rip_relative = false;
  bool is_sti = false;     // interrupts stay off for one more instruction
  bool loads_idt = false;  // lidt: changes the interrupt table
  bool loads_gs = false;   // changes the base of GS: a load of the selector, swapgs, wrgsbase
};

/// Decodes the instruction at the start of `bytes` (at most kLongestInstruction are looked at), as
/// if it lay at `address`. Empty when it does not decode, or when `bytes` ends inside it.
std::optional<Instruction> decode(std::span<const std::byte> bytes, GuestVirt address);

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

/// The effect of an instruction on its operands: the first one is `to`, the second `from`.
enum class Effect : std::uint8_t {
  Unknown,  // not one of these, or with operands that cannot be evaluated
  Nothing,
  Move,         // also with zero extension
  SignExtend,   // of `from` to the size of `to`
  LoadAddress,  // lea
  Exchange,
  Push,  // `from`
  Pop,   // `to`
  Leave,
  And,
  Or,
  Xor,
  Test,
  Add,
  AddCarry,
  Subtract,
  SubtractBorrow,
  Compare,
  Increment,
  Decrement,
  Negate,
  Not,
  ShiftLeft,
  ShiftRight,
  ShiftArithmetic,
  RotateLeft,
  RotateRight,
  Multiply,        // to = from * third, signed, cut to the size of `to`
  HighSignToData,  // cdq, cqo: rdx is the sign of rax
  BitTest,
  ByteSwap,
  CountOnes,
  SetIf,
  MoveIf,
  Jump,  // also conditional
  Call,  // direct
  Return,
};

/// Where an operand lies.
struct Operand {
  enum class Kind : std::uint8_t { None, Register, Memory, Immediate };
  Kind kind = Kind::None;
  std::uint8_t bytes = 0;  // 1, 2, 4 or 8
  bool is_high = false;    // ah, bh, ch, dh
  arch::Register which = nullptr;
  std::uint64_t value = 0;  // of an immediate, extended to 64 bits with its sign
};

/// An instruction with its operands.
struct Operation : Instruction {
  GuestVirt address;
  InstructionClass kind = InstructionClass::Other;
  /// Of String, Lock, Load and Store what they work on (of movs and cmps: the first operand); of an
  /// indirect Call or Jmp where the target is read from; of a lea the address that it computes.
  /// Empty where registers do not say it.
  std::optional<MemoryOperand> memory;
  std::uint16_t bytes = 0;                   // that one access has; 0: unknown
  arch::Register target_register = nullptr;  // of an indirect Call or Jmp: it says where to
  arch::Register stored = nullptr;  // of a mov to memory: the register that it stores all of
  CountJump counts = CountJump::None;
  bool repeats = false;       // a String with rep: as often as rcx says
  bool does_nothing = false;  // a nop, or a landing pad

  Effect effect = Effect::Unknown;
  Operand to{}, from{}, third{};  // of a known effect; one that lies in memory is at `memory`

  GuestVirt next() const { return address.wrapping_add(length); }

  /// Whether it adds to 8 bytes of memory in one go: inc, dec, add and sub. A kernel counts with
  /// them, so they are the exact places of its counters. Not with a lock prefix: counters of a CPU
  /// need none.
  bool adds_to_memory() const;
  /// By how much that memory grows, modulo 2^64.
  std::uint64_t added(const Registers& registers) const;
};

/// Decodes the instruction at the start of `bytes` as if it lay at `address`. Empty where decode()
/// is.
std::optional<Operation> decode_operation(std::span<const std::byte> bytes, GuestVirt address);

/// The text of the instruction in Intel's syntax, which says the size of every access; empty when
/// it does not decode.
std::string assembly(std::span<const std::byte> bytes, GuestVirt address);

/// Code for `slot` that does what the instruction at the start of `bytes` does at `from`, and then
/// jumps back to the next instruction if it can fall through. At most kMaxSlotBytes bytes.
/// After a displaced sti, interrupts come one instruction earlier than in its place, which is for
/// the caller to look at. Unsupported, with the reason, for an instruction that cannot be
/// displaced.
/// A displaced call jumps, with the original return address on the stack. That one takes fewer bytes
/// where it is in the lowest or the highest 2 GiB.
inline constexpr std::size_t kMaxSlotBytes = 32;
Result<std::vector<std::byte>> relocate(std::span<const std::byte> bytes, GuestVirt from,
                                        GuestVirt slot);

/// Code that returns to the next instruction, whose address is on the top of the stack when it
/// begins. Before and after, the stack is as the instruction has it.
struct ReturningCode {
  /// While the next byte to run is one of these, the stack has `words` more words than it has at
  /// the address that lies `back` bytes before that return address, and all else is as there. The
  /// return address is the topmost word.
  struct Part {
    std::uint8_t size, words, back;
  };
  std::vector<std::byte> bytes;
  std::array<Part, 2> parts{};
};
/// The same as relocate() for an instruction that can be followed by such a return: it falls
/// through, and does not use the stack unless it is the push of a register. Empty for any other.
std::optional<ReturningCode> relocate_with_return(std::span<const std::byte> bytes, GuestVirt from,
                                                  GuestVirt slot);

/// The same as relocate() for several instructions one after the other, which are all of `bytes`;
/// only the last one may branch. Its size does not depend on `slot` either. Unsupported as above.
Result<std::vector<std::byte>> relocate_run(std::span<const std::byte> bytes, GuestVirt from,
                                            GuestVirt slot);

}  // namespace ringside::disasm
