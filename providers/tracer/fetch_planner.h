// Works out which memory a trap point that records has to copy (vmm/shim/fetch_list.h): what the
// clauses of its probes look at (dif/verify/record_needs.h), and what the probe's own place needs
// to tell its arguments. And which of its traps need no record, since the guest can tell that no
// clause would do anything. Used by the tracer. Fire context: no.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "dif/verify/record_needs.h"
#include "providers/context/binding.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/paths.h"
#include "vmm/shim/fetch_list.h"

namespace ringside::providers {

/// A probe at a place, and what its clauses need.
struct PlacedProbe {
  const Binding* binding = nullptr;
  dif::RecordNeeds needs;
  bool in_process = false;  // the place is in a file of a process's, else in the kernel
};

/// Where a task's stack in user mode begins, which is at one of these words: that of a process's
/// first thread, or, as C libraries lay it out, that of another thread, below its own data.
struct UserStackEnds {
  std::uint32_t first_thread = 0;  // in struct mm_struct
  std::uint32_t thread_data = 0;   // in struct task_struct: its FS base

  /// Empty if the kernel's types do not tell.
  static std::optional<UserStackEnds> from(const TypeGraph& types);
};

/// Where the kernel keeps what clauses may look at by a built-in variable or a path.
struct KernelOffsets {
  const guest_linux::KernelLayout& layout;
  std::optional<GuestVirt> run_queues;             // ThreadClock::run_queues()
  std::optional<guest_linux::PathLayout> paths{};  // empty: paths wait
  /// From the lowest address of a task's stack in the kernel to the registers of user mode.
  std::uint64_t saved_registers = 0;
  /// Empty, with the reason: clauses that follow the process's stack wait.
  Result<UserStackEnds> user_stacks = UserStackEnds{};
};

/// Makes `list` what firings of the probes at one place need. Returns why they
/// cannot be recorded, worded to follow "waits: "; empty: they can.
std::optional<std::string> plan_fetch(vmm::FetchList& list, std::span<const PlacedProbe> probes,
                                      const KernelOffsets& kernel);

}  // namespace ringside::providers
