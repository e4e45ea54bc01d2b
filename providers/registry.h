// The registry: every provider of one tracer, with the range of probe ids that each may use.
// Used by the tracer. It finds probes by pattern or id, and passes enable() to the right provider.
// It does not know what a probe stands on. The same guest has the same ids in every run, so that an
// id from a listing can be used later. Ranges follow each other in the order of add(); each
// provider says how long its range is.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "dif/program/probe_description.h"
#include "providers/provider.h"
#include "vmm/base/result.h"

namespace ringside::providers {

class Registry {
 public:
  /// Takes the provider, and gives it the next range of ids. The first id of all is 1. Before
  /// anything else is asked.
  void add(std::unique_ptr<Provider> provider);

  /// Visits every published probe that matches, in the order of ids. An error is the first one of a
  /// provider; those after it were not asked.
  Result<void> for_each(const dif::ProbeDescription& pattern, const Provider::Visitor& visit);
  /// While tracing runs: see Provider::admit() and provide_in().
  Result<void> admit(std::uint16_t module);
  Result<void> for_each_in(std::uint16_t module, const dif::ProbeDescription& pattern,
                           const Provider::Visitor& visit);
  /// The same: see Provider::follow_files(). `names`: gets the files'.
  Result<std::size_t> follow_files(std::vector<std::string>& names);
  /// Visits what matches but is refused, in the same order; see Provider::refusals().
  Result<void> refusals(const dif::ProbeDescription& pattern,
                        const Provider::RefusalVisitor& visit);
  /// See Provider::gaps().
  void gaps(const dif::ProbeDescription& pattern, const Provider::RefusalVisitor& visit);
  /// Empty when no provider has published one with this id.
  Result<std::optional<Probe>> by_id(dif::ProbeId id);
  /// Unknown for a probe that no provider published.
  ProbeArguments arguments(const Probe& probe);
  /// One line on what the probe stands on; empty where its provider has none.
  std::string detail(const Probe& probe);
  /// Nothing is promised of a probe that no provider published.
  dif::ProviderAttributes attributes(const Probe& probe);
  /// Whether there is a provider of exactly this name.
  bool has(std::string_view provider) const;
  /// Before tracing begins. NotFound for a probe that no provider published, else as
  /// Provider::enable().
  Result<void> enable(const Probe& probe);
  /// While tracing runs: enables those of `probes` that are not enabled, and returns which. With an
  /// error none of them is. Unsupported, with the reason, for one that can only be enabled before
  /// tracing begins.
  Result<std::vector<Probe>> enable_more(std::span<const Probe> probes);
  /// Notes that these are enabled no more; Unsupported, for all, where one cannot be.
  Result<void> disable(std::span<const Probe> probes);

 private:
  struct Entry {
    std::unique_ptr<Provider> provider;
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };
  /// Those that may have probes that match, in the order of ids.
  std::vector<Provider*> asked_for(const dif::ProbeDescription& pattern) const;
  Provider* owner(dif::ProbeId id);
  Result<Provider*> changeable_owner(const Probe& probe);

  std::vector<Entry> entries_;
  std::uint32_t next_id_ = 1;
};

}  // namespace ringside::providers
