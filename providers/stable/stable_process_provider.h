// A stable provider of processes (plockstat, ssl): probes that D libraries define on functions of
// programs and libraries, as StableProvider has those of the kernel's (stable_provider.h). A
// definition's places are files by their names, so each process that has such a file mapped has its
// probes. The provider's name has the number of a process behind it (plockstat812), or a star, or
// nothing: all processes (process_provider.h).
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "providers/pid/process_provider.h"
#include "providers/stable/stable_place.h"
#include "providers/stable/stable_provider.h"

namespace ringside::providers {

class StableProcessProvider final : public ProcessProvider {
 public:
  /// The probes of `provider`, a name that one of the definitions has. All must outlive it.
  StableProcessProvider(std::string_view provider, std::shared_ptr<StableProvider::Shared> shared,
                        const vmm::GuestMemory& memory, guest_linux::Kernel& kernel,
                        UserPointTable& table, ProbePoints& points);

  bool has_name(std::string_view provider) const override;
  bool may_match(std::string_view pattern) const override { return has_name(pattern); }
  Result<void> enable(const Probe& probe) override;

 private:
  /// A definition for one process, or for all. Each has what has begun for itself.
  struct Row {
    std::unique_ptr<StablePlace> place;
    const TrapFilter *at_start = nullptr, *at_end = nullptr;
  };

  std::optional<std::int32_t> process_in(std::string_view provider) const;
  Result<void> look(const dif::ProbeDescription& names, const Trouble& trouble,
                    std::set<std::uint32_t>* published, const Module* only) override;
  Result<void> look_for(const Pattern& pattern, std::size_t definition,
                        const std::vector<Module>& modules);
  Result<Row*> row_of(std::size_t definition, std::int32_t process);
  Result<std::optional<Entry>> entry_of(const Pattern& pattern, std::size_t definition,
                                        const Module& module);
  Result<void> put(Entry& entry, std::size_t definition, const Module& module);
  /// In a file of processes, all places with the plan and the filter of `as`.
  Result<void> add_places(Entry& entry, const Module& module, const dif::ProbePlace& place,
                          const Place& as, OnTailCall on_tail_call);
  Result<std::vector<BoundSite>> kernel_sites(std::size_t definition, const Row& row);

  guest_linux::Kernel& kernel_;
  const std::shared_ptr<StableProvider::Shared> shared_;
  std::vector<const dif::ProbeDefinition*> definitions_;
  std::map<std::pair<std::size_t, std::int32_t>, Row> rows_;  // by definition and process
  /// The last beginnings of tasks, by probe and process.
  std::map<std::pair<std::string_view, std::int32_t>, std::shared_ptr<StartTable>> starts_;
};

}  // namespace ringside::providers
