// Proof that a layout of RAM is the right one, before anything is written by it: structures all
// over memory refer to each other by address, and each is found where the layout says.
//   - the list of all tasks, whose nodes lie all over RAM, closes, and each node points back;
//   - the trampoline of real mode lies in the first megabyte, knows its own address, and its page
//     directory maps the same as the kernel's (the task list alone proves nothing about low
//     memory);
//   - above 4 GiB lies a task or a page table that this layout leads to.
// Hostile input: everything is the guest's, and may change meanwhile; every walk is bounded.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "vmm/base/result.h"
#include "vmm/guest_memory.h"
#include "vmm/linux/kernel_memory.h"

namespace ringside::vmm {

/// Below it machines leave a gap in RAM for devices; what is more lies from here on.
inline constexpr std::uint64_t k4GiB = std::uint64_t{1} << 32;

/// The kernel's own account of its memory.
struct KernelOutline {
  std::uint64_t end = 0;         // of RAM: one more than its last guest-physical address
  std::uint64_t direct_map = 0;  // where the kernel maps all RAM
  GuestVirt max_pfn;             // the variable that says so
  GuestVirt init_task;
  GuestVirt real_mode_header;  // the pointer to it
};

/// Unsupported when this kernel does not say, naming what is missing.
Result<KernelOutline> read_outline(const guest_linux::KernelMemory& kernel);

/// `kernel` reads through the memory that is to be proven. Unsupported tells which proof failed.
Result<void> prove_ram(const GuestMemory& memory, const guest_linux::KernelMemory& kernel,
                       const KernelOutline& outline);

}  // namespace ringside::vmm
