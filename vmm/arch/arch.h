// The architecture of the guests: all that the rest of the host needs of it, in one namespace. A
// file that needs one piece may include that piece alone.
//
// A second architecture supplies the same names, in a folder of its own beside x86_64/:
//   registers.def, registers.h   Registers; which is the stack pointer, the frame pointer, the
//                                program counter; their numbers in instructions and for D
//   calling_convention.h         which registers carry arguments and results, what a frame holds
//   instructions.h               the breakpoint's bytes, the longest instruction, conditions
//   interrupts.h                 the interrupt table, and what the CPU saves when it takes a trap
//   paging.h                     the page size, entries, which table is in use, the walk
//   pt_regs.h                    how Linux saves registers, and what a system call is given
//   regs.d.in                    R_RAX and others: D's names for the indices of regs[]
// It also supplies what is made of instructions and devices: a decoder (disasm), a stub
// (guest-shim), the unwinding of kernel stacks (vmm/linux/stacks), the state of a vCPU (vmm/kvm).
// The asserts below state what the callers rely on.
//
// Does not: read memory, or know a machine.
// Fire context: yes.
#pragma once

#include <bit>
#include <type_traits>

#include "vmm/arch/x86_64/calling_convention.h"
#include "vmm/arch/x86_64/instructions.h"
#include "vmm/arch/x86_64/interrupts.h"
#include "vmm/arch/x86_64/paging.h"
#include "vmm/arch/x86_64/pt_regs.h"
#include "vmm/arch/x86_64/registers.h"

namespace ringside::arch {

static_assert(std::is_trivially_copyable_v<Registers>, "snapshots are copied as bytes");
static_assert(std::has_single_bit(kPageSize) && kLargePageSize % kPageSize == 0);
static_assert(kLongestInstruction >= sizeof kBreakpoint, "a breakpoint stands on an instruction");
static_assert(sizeof kBreakpoint == 1, "one store arms a place, whatever runs there meanwhile");
static_assert(condition_holds(kNoCondition, 0), "what depends on no flags always happens");

}  // namespace ringside::arch
