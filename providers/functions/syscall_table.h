// The system calls of a guest kernel: where their arguments are, and where all of them return to.
// Names are Linux's own (those of its syscall tracepoints): the function of `openat` is
// __x64_sys_openat.
// Used by the syscall provider. Reads guest text and tables; writes nothing.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "providers/context/binding.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

struct SystemCall {
  std::string name;              // without __x64_sys_
  guest_linux::Symbol function;  // __x64_sys_NAME; its own `name` view lives in the symbol table
  std::uint32_t number = kNoNumber;
};

/// The calls that stand in sys_call_table, by number; all __x64_sys_ functions by address, without
/// numbers, where the kernel has no such table. Without ni_syscall, which many numbers share.
std::vector<SystemCall> find_system_calls(const GuestReader& kernel,
                                          const guest_linux::SymbolTable& symbols);

/// Byte offsets in struct pt_regs (arch/x86/include/asm/ptrace.h).
struct PtRegsLayout {
  std::array<std::uint32_t, arch::kSystemCallArguments.size()> arguments;
  std::uint32_t result = 0, number = 0;  // ax, orig_ax
};

/// From the guest's types; where they are silent, the layout that x86-64 has had in every version
/// (arch::SavedRegisters), because ptrace and signal frames expose it to user programs.
PtRegsLayout find_pt_regs(const TypeGraph& types);

/// At __x64_sys_NAME, which is given the address of the caller's registers.
ArgumentPlan system_call_entry_plan(const PtRegsLayout& layout);

/// An instruction of do_syscall_64 that stores a call's result into pt_regs: rax still holds it.
struct SharedReturn {
  GuestVirt address;
  arch::Register pt_regs = nullptr;  // which register holds their address
};

/// Every place in do_syscall_64 where the result of a call is stored to pt_regs->ax: on 6.1 the
/// calls through sys_call_table, on 6.12 that of x64_sys_call; not where a number that is no call's
/// is answered (__x64_sys_ni_syscall). Empty when the code looks different.
std::vector<SharedReturn> find_shared_returns(const GuestReader& kernel,
                                              const guest_linux::SymbolTable& symbols,
                                              const PtRegsLayout& layout);

}  // namespace ringside::providers
