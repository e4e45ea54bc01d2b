// Finds the places of stable probes in one kernel. All stable providers share one KernelPlaces, so
// that each search (for static tracepoints, for counters) is made once.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "providers/functions/function_probes.h"
#include "providers/sdt/sdt.h"
#include "providers/stable/counter_sites.h"
#include "providers/stable/stable_probe.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

inline constexpr std::string_view kKernelModule = "vmlinux";

class KernelPlaces {
 public:
  /// `text` is kernel text without breakpoints of ours. All must outlive it.
  KernelPlaces(const GuestReader& text, guest_linux::Kernel& kernel, ProbePoints& points)
      : kernel_(kernel),
        functions_(text, kernel, points),
        tracepoints_(text, kernel, points),
        counters_(text, kernel, points) {}

  /// Whether this kernel is of the form.
  bool is(KernelForm form);
  /// The name of the function that a probe stands in: this kernel's, or else the table's. For a
  /// tracepoint its name, for a counter the enumerator's.
  std::string function_name(const StableProbe& probe);
  /// The function that a probe at an entry or a return stands in; null for others.
  const guest_linux::Symbol* function(const StableProbe& probe);
  /// The parameters of a tracepoint; empty for other places.
  std::span<const Parameter> parameters(const StableProbe& probe) const;
  /// Whether this kernel has the place. Error (Unsupported): it lacks it.
  Result<void> check(const StableProbe& probe);
  /// Checks that a tracepoint of this kernel has the argument with which a native begins, if it
  /// begins with one: a missing argument would read as 0. Error (Unsupported): it has not.
  Result<void> check_argument(const StableProbe& probe, const NativeValue& native) const;
  /// The places where the probe stands, for use after check(). The bindings still lack the probe's
  /// id, plan and condition. Error (Unsupported): the reason why no probe can stand there.
  Result<std::vector<BoundSite>> sites(const StableProbe& probe);

 private:
  const guest_linux::Symbol* function_at(std::string_view place);
  Result<void> check_function(const StableProbe& probe);
  Result<std::vector<BoundSite>> function_sites(const StableProbe& probe);

  const guest_linux::Kernel& kernel_;
  /// By the place in the table, which outlives this. Null: this kernel has none. That is kept too,
  /// because finding it out means searching all symbols.
  std::unordered_map<std::string_view, const guest_linux::Symbol*> known_;
  FunctionProbes functions_;
  SdtProvider tracepoints_;  // for where tracepoints stand; it publishes nothing
  CounterSites counters_;
};

}  // namespace ringside::providers
