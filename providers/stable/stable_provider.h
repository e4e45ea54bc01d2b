// A stable provider (proc, sched, ip...): probes that dtrace documents, at the places of this
// kernel where the same thing happens. Each place is a probe of its own, as in illumos, and the
// probe's function tells where it is. Reads the kernel only when a program asks for the provider's
// probes.
//
// How to add a probe: a definition in a library (dif/d/library, docs/providers-in-d.md); a
// translator in a library for its args[]; a row in docs/providers.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "providers/provider.h"
#include "providers/registry.h"
#include "providers/stable/defined_probes.h"
#include "providers/stable/kernel_places.h"
#include "providers/stable/place_evaluator.h"
#include "providers/trap_points/user_point_table.h"
#include "vmm/guest_memory.h"

namespace ringside::providers {

class StablePlace;

class StableProvider final : public Provider {
 public:
  /// The parts that all of them share.
  struct Shared {
    Shared(std::shared_ptr<const DefinedProbes> probes, const GuestReader& text,
           guest_linux::Kernel& kernel, ProbePoints& points)
        : defined(std::move(probes)), places(text, kernel, points), evaluator(kernel) {}
    const std::shared_ptr<const DefinedProbes> defined;
    KernelPlaces places;
    PlaceEvaluator evaluator;
    std::atomic<std::uint64_t> displaced = 0;  // beginnings whose end finds nothing (StartTable)
  };
  /// The probes of `provider`, a name that one of the definitions has. `kernel` and `points` must
  /// outlive it.
  StableProvider(std::string_view provider, std::shared_ptr<Shared> shared,
                 guest_linux::Kernel& kernel, ProbePoints& points);
  ~StableProvider() override;

  std::uint32_t id_count() const override { return static_cast<std::uint32_t>(rows_.size()); }
  Result<void> provide(const dif::ProbeDescription& pattern, const Visitor& visit) override;
  Result<void> refusals(const dif::ProbeDescription& pattern, const RefusalVisitor& visit) override;
  /// Places that this kernel lacks, of names that have others.
  void gaps(const dif::ProbeDescription& pattern, const RefusalVisitor& visit) override;
  Result<std::optional<Probe>> by_id(dif::ProbeId id) override;
  ProbeArguments arguments(const Probe& probe) override;
  Result<void> enable(const Probe& probe) override;
  bool is_enabled(dif::ProbeId id) const override;
  void note_disabled(dif::ProbeId id) override;

 private:
  struct Sites {
    std::vector<BoundSite> starts, ends;
  };
  struct Row {
    const dif::ProbeDefinition* probe = nullptr;
    std::unique_ptr<StablePlace> place{};  // made when it is asked for; bindings point into it
    std::optional<Sites> sites{};          // wait here from its examination until it is enabled
    bool enabled = false;
  };

  dif::ProbeDescription name_of(const Row& row) const;
  Probe probe(std::uint32_t index) const;
  Result<StablePlace*> place_of(Row& row);
  Result<void> find_sites(const dif::ProbeDefinition& probe, Sites& found);
  Result<void> examine(Row& row);
  void for_each_row(const dif::ProbeDescription& pattern,
                    const std::function<void(std::uint32_t)>& visit) const;

  const guest_linux::Kernel& kernel_;
  ProbePoints& points_;
  const std::shared_ptr<Shared> shared_;
  KernelPlaces& places_;
  std::vector<Row> rows_;
  std::uint64_t generation_ = 0;  // that their sites are of
};

/// The stability that the Dynamic Tracing Guide promises of proc, sched, io, ip, tcp and udp
/// ("Stability").
extern const dif::ProviderAttributes kStableAttributes;

/// The promise of a definition: its probe's arguments.
ProbeArguments arguments_of(const dif::ProbeDefinition& probe, const StablePlace& place);

/// The providers of these definitions, in the order of their ids. `text` is kernel text without
/// breakpoints of ours. Returns how many beginnings were displaced so far, which goes on counting.
std::shared_ptr<const std::atomic<std::uint64_t>> add_stable_providers(
    Registry& registry, std::shared_ptr<const DefinedProbes> defined, const GuestReader& text,
    const vmm::GuestMemory& memory, guest_linux::Kernel& kernel, UserPointTable& users,
    ProbePoints& points);

}  // namespace ringside::providers
