// Tracepoints that are taken out for a moment: before the guest sets a kprobe, it reads the text of
// the function as code. Afterwards they come back as int3s. Used by the tracepoint table.
// Does not: notice that the guest reads (providers/tracer/kprobe_watch.h).
// Threads: any that holds the table's lock. Fire context: no.
#pragma once

#include <vector>

#include "providers/tracepoint/armed_text.h"
#include "providers/tracepoint/fault_search_point.h"
#include "providers/tracepoint/tracepoint_store.h"
#include "vmm/base/result.h"
#include "vmm/linux/text/kprobes.h"
#include "vmm/machine.h"
#include "vmm/shim/shim.h"

namespace ringside::providers {

class PointsAside {
 public:
  /// All must outlive it.
  struct Parts {
    vmm::Shim& shim;
    const guest_linux::KprobeTable& kprobes;
    TracepointStore& store;
    const FaultSearchPoint& search;
    ArmedText& armed;
  };

  explicit PointsAside(const Parts& parts) : parts_(parts) {}

  /// Restores the text of all tracepoints in the function that contains `at`. Returns whether there
  /// were any.
  Result<bool> step_aside(vmm::PausedMachine& machine, GuestVirt at);
  /// Arms them again, but for those where a kprobe has come to stand, which are dropped. False, and
  /// nothing is done, while the guest is changing its text.
  Result<bool> step_back(vmm::PausedMachine& machine);
  /// Forgets the tracepoints: none of them comes back.
  void forget() { ids_.clear(); }

 private:
  using Id = TracepointStore::Id;

  const Parts parts_;
  std::vector<Id> ids_;
};

}  // namespace ringside::providers
