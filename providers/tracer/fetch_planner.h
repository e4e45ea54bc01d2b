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

class FetchPlanner {
 public:
  /// `layout`: of the kernel's structures.
  explicit FetchPlanner(const guest_linux::KernelLayout& layout) : layout_(layout) {}

  /// Adds to `list` what firings of the probe at this place need, for clauses with these needs.
  /// Returns why they cannot be recorded, worded to follow "waits: "; empty: they can.
  std::optional<std::string> add(vmm::FetchList& list, const Binding& binding,
                                 const dif::RecordNeeds& needs) const;

 private:
  const guest_linux::KernelLayout layout_;
};

}  // namespace ringside::providers
