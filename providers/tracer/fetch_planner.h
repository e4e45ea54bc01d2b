// Works out which memory a trap point that records has to copy (vmm/shim/fetch_list.h): what the
// clauses of its probes look at (dif/verify/record_needs.h), and what the probe's own place needs
// to tell its arguments. Used by the tracer. Fire context: no.
#pragma once

#include <optional>
#include <string>

#include "dif/verify/record_needs.h"
#include "providers/context/binding.h"
#include "vmm/linux/kernel.h"
#include "vmm/shim/fetch_list.h"

namespace ringside::providers {

/// Adds to `list` what firings of the probe at this place need, for clauses with these needs.
/// `layout`: of the kernel's structures. Returns why they cannot be recorded, worded to follow
/// "waits: "; empty: they can.
std::optional<std::string> plan_fetch(vmm::FetchList& list, const Binding& binding,
                                      const dif::RecordNeeds& needs,
                                      const guest_linux::KernelLayout& layout);

}  // namespace ringside::providers
