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
};

/// Where the kernel keeps what clauses may look at by a built-in variable or a path.
struct KernelOffsets {
  const guest_linux::KernelLayout& layout;
  std::optional<GuestVirt> run_queues;             // ThreadClock::run_queues()
  std::optional<guest_linux::PathLayout> paths{};  // empty: paths wait
};

/// Makes `list` what firings of the probes at one place need. Returns why they
/// cannot be recorded, worded to follow "waits: "; empty: they can.
std::optional<std::string> plan_fetch(vmm::FetchList& list, std::span<const PlacedProbe> probes,
                                      const KernelOffsets& kernel);

}  // namespace ringside::providers
