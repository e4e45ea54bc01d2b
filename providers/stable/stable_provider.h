// A stable provider (proc, sched, ip...): probes that dtrace documents, at the places of this
// kernel where the same thing happens. Each place is a probe of its own, as in illumos, and the
// probe's function tells where it is. Reads the kernel only when a program asks for the provider's
// probes.
//
// How to add a probe: a row in one of the tables (stable_tables.h); a translator in a library for
// its args[] (dif/d/library); a row in docs/providers.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "providers/provider.h"
#include "providers/registry.h"
#include "providers/stable/kernel_places.h"
#include "providers/stable/stable_probe.h"

namespace ringside::providers {

class StablePlace;

class StableProvider final : public Provider {
 public:
  /// All must outlive it, the table included.
  StableProvider(const StableTable& table, std::shared_ptr<KernelPlaces> places,
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
    const StableProbe* probe = nullptr;
    std::unique_ptr<StablePlace> place{};  // made when it is asked for; bindings point into it
    std::optional<Sites> sites{};          // wait here from its examination until it is enabled
    bool enabled = false;
  };

  dif::ProbeDescription name_of(const Row& row) const;
  Probe probe(std::uint32_t index) const;
  Result<StablePlace*> place_of(Row& row);
  Result<void> examine(Row& row);
  void for_each_row(const dif::ProbeDescription& pattern,
                    const std::function<void(std::uint32_t)>& visit) const;

  const guest_linux::Kernel& kernel_;
  ProbePoints& points_;
  const std::shared_ptr<KernelPlaces> places_;
  std::vector<Row> rows_;
  std::uint64_t generation_ = 0;  // that their sites are of
};

/// All stable providers, in the order of their ids. `text` is kernel text without breakpoints of
/// ours.
void add_stable_providers(Registry& registry, const GuestReader& text, guest_linux::Kernel& kernel,
                          ProbePoints& points);

}  // namespace ringside::providers
