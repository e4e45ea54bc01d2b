// Decodes x86-64 instructions, and moves one to another place: the facts that the rest of ringside
// needs, without any decoder's types.
// Used by providers. Zydis stays inside zydis_decoder.{h,cc} and relocate.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
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
  /// Of a ConditionalJump by jcc; jrcxz and loop depend on no flags.
  arch::Condition condition = arch::kNoCondition;
  bool rip_relative = false;
  bool is_sti = false;     // interrupts stay off for one more instruction
  bool loads_idt = false;  // lidt: changes the interrupt table
  bool loads_gs = false;   // changes the base of GS: a load of the selector, swapgs, wrgsbase
};

/// Decodes the instruction at the start of `bytes` (at most kLongestInstruction are looked at), as
/// if it lay at `address`. Empty when it does not decode.
std::optional<Instruction> decode(std::span<const std::byte> bytes, GuestVirt address);

/// Code for `slot` that does what the instruction at the start of `bytes` does at `from`, and then
/// jumps back to the next instruction if it can fall through. At most kMaxSlotBytes bytes.
/// After a displaced sti, interrupts come one instruction earlier than in its place, which is for
/// the caller to look at. Unsupported, with the reason, for an instruction that cannot be
/// displaced.
inline constexpr std::size_t kMaxSlotBytes = 32;
Result<std::vector<std::byte>> relocate(std::span<const std::byte> bytes, GuestVirt from,
                                        GuestVirt slot);

/// The same for several instructions one after the other, which are all of `bytes`; only the last
/// one may branch. Its size does not depend on `slot` either. Unsupported as above.
Result<std::vector<std::byte>> relocate_run(std::span<const std::byte> bytes, GuestVirt from,
                                            GuestVirt slot);

}  // namespace ringside::disasm
