// Walks a kernel stack in guest memory by the ORC tables (stack_tables.h), as the kernel's own
// unwinder does (unwind_next_frame() in arch/x86/kernel/unwind_orc.c). Used by the contexts of
// firings, by the search for tasks in our code, and by `why`. Hostile input: a walk makes a bounded
// number of steps, and every word is read by copy. Fire context: yes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "vmm/arch/arch.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/stacks/stack_tables.h"

namespace ringside::guest_linux {

/// The place where a walk begins.
enum class WalkStart : std::uint8_t {
  Here,    // the first frame is the program counter
  Caller,  // the stack pointer points at a return address: a function's first instruction or last
};

/// Fills `frames` with code addresses from the innermost frame outward, up to the entry from user
/// mode; returns how many. A frame that cannot be walked ends it.
std::size_t unwind(const StackTables& tables, const GuestReader& stack, const Registers& from,
                   WalkStart start, std::span<std::uint64_t> frames);

/// Whether such a walk comes through code in `range`, moved text being where it is. Empty when it
/// does not get to the entry from user mode, nor to where a thread of the kernel begins.
std::optional<bool> passes(const StackTables& tables, const GuestReader& stack,
                           const Registers& from, WalkStart start, Kernel::AddressRange range);

}  // namespace ringside::guest_linux
