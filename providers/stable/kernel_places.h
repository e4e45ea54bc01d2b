// Finds the places of stable probes in one kernel. All stable providers share one KernelPlaces, so
// that each search (for static tracepoints, for counters) is made once.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dif/program/probe_definition.h"
#include "providers/functions/function_probes.h"
#include "providers/sdt/sdt.h"
#include "providers/stable/counter_sites.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

class KernelPlaces {
 public:
  /// `text` is kernel text without breakpoints of ours. All must outlive it.
  KernelPlaces(const GuestReader& text, guest_linux::Kernel& kernel, ProbePoints& points)
      : kernel_(kernel),
        functions_(text, kernel, points),
        tracepoints_(text, kernel, points),
        counters_(text, kernel, points) {}

  /// Whether this kernel is one of these.
  bool is(dif::ProbeDefinition::Kernels form);
  /// The type of an argument as a definition writes it. Error (Unsupported): this kernel has none.
  Result<TypeId> written_type(const std::string& written);
  /// The name of the function that a probe stands in: this kernel's, or else the definition's. For
  /// a tracepoint its name, for a counter the enumerator's.
  std::string function_name(const dif::ProbePlace& place);
  /// The function that a probe at an entry or a return stands in; null for others.
  const guest_linux::Symbol* function(const dif::ProbePlace& place);
  /// The parameters of a tracepoint; empty for other places.
  std::span<const Parameter> parameters(const dif::ProbePlace& place) const;
  /// Whether this kernel has the place. Error (Unsupported): it lacks it.
  Result<void> check(const dif::ProbePlace& place);
  /// The places where the probe stands, for use after check(). The bindings still lack the probe's
  /// id, plan and condition. A place in processes has none. Error (Unsupported): the reason why no
  /// probe can stand there.
  Result<std::vector<BoundSite>> sites(const dif::ProbePlace& place);

 private:
  const guest_linux::Symbol* function_at(std::string_view names, std::string_view module);
  Result<void> check_function(const dif::ProbePlace& place);
  Result<std::vector<BoundSite>> function_sites(const dif::ProbePlace& place);

  const guest_linux::Kernel& kernel_;
  /// By module and name of the place in its definition, which outlives this. Null: this kernel has
  /// none. That is kept too, because finding it out means searching all symbols.
  std::map<std::pair<std::string_view, std::string_view>, const guest_linux::Symbol*> known_;
  std::map<std::string, std::optional<TypeId>> types_;  // finding one means searching all
  FunctionProbes functions_;
  SdtProvider tracepoints_;  // for where tracepoints stand; it publishes nothing
  CounterSites counters_;
};

}  // namespace ringside::providers
