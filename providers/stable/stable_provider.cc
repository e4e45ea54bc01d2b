#include "providers/stable/stable_provider.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "providers/other_kernels.h"
#include "providers/stable/stable_place.h"
#include "providers/stable/stable_process_provider.h"

namespace ringside::providers {
namespace {

/// Published scripts may name the modules that illumos's kernel is made of, with its functions:
/// io:genunix::start. They mean the probes of the kernel, whose functions are others here.
dif::ProbeDescription on_this_kernel(dif::ProbeDescription pattern) {
  if (is_module_of_illumos_kernel(pattern.module)) {
    pattern.module.clear();
    pattern.function.clear();
  }
  return pattern;
}

}  // namespace

const dif::ProviderAttributes kStableAttributes = [] {
  using enum dif::Stability;
  using enum dif::DependencyClass;
  return dif::ProviderAttributes{.provider = {Evolving, Evolving, Isa},
                                 .module = {Private, Private, Unknown},
                                 .function = {Private, Private, Unknown},
                                 .name = {Evolving, Evolving, Isa},
                                 .arguments = {Evolving, Evolving, Isa}};
}();

StableProvider::StableProvider(std::string_view provider, std::shared_ptr<Shared> shared,
                               guest_linux::Kernel& kernel, ProbePoints& points)
    : Provider(provider, kStableAttributes),
      kernel_(kernel),
      points_(points),
      shared_(std::move(shared)),
      places_(shared_->places) {
  for (const dif::ProbeDefinition& probe : shared_->defined->probes) {
    if (probe.provider == provider) rows_.push_back({.probe = &probe});
  }
}

StableProvider::~StableProvider() = default;

dif::ProbeDescription StableProvider::name_of(const Row& row) const {
  return {std::string(name()), row.probe->place.module, places_.function_name(row.probe->place),
          row.probe->name};
}

Probe StableProvider::probe(std::uint32_t index) const {
  return {id_at(index), name_of(rows_[index])};
}

void StableProvider::for_each_row(const dif::ProbeDescription& pattern,
                                  const std::function<void(std::uint32_t)>& visit) const {
  if (!dif::field_matches(pattern.provider, name())) return;
  const dif::ProbeDescription here = on_this_kernel(pattern);
  for (std::uint32_t index = 0; index < rows_.size(); ++index) {
    const dif::ProbeDefinition& probe = *rows_[index].probe;
    if (!dif::field_matches(pattern.name, probe.name) || !places_.is(probe.kernels)) continue;
    if (dif::matches(here, name_of(rows_[index]))) visit(index);
  }
}

Result<StablePlace*> StableProvider::place_of(Row& row) {
  if (row.place == nullptr) {
    row.place =
        TRY(StablePlace::make(*row.probe, *shared_->defined, kernel_, places_, shared_->evaluator));
  }
  return row.place.get();
}

Result<void> StableProvider::find_sites(const dif::ProbeDefinition& probe, Sites& found) {
  if (probe.beginning) found.starts = TRY(places_.sites(probe.beginning->place));
  found.ends = TRY(places_.sites(probe.place));
  return {};
}

/// Finds where it stands unless that is done; the error says why it stands nowhere.
Result<void> StableProvider::examine(Row& row) {
  if (std::exchange(generation_, points_.generation()) != points_.generation()) {
    for (Row& one : rows_) one.sites.reset();
  }
  if (row.sites) return {};
  Sites found;
  // A place that is not there says more than an argument that it has not.
  if (row.probe->place.kind == dif::ProbePlace::Kind::Tracepoint)
    TRY(find_sites(*row.probe, found));
  TRY(place_of(row));
  if (found.ends.empty()) TRY(find_sites(*row.probe, found));
  row.sites = std::move(found);
  return {};
}

Result<void> StableProvider::provide(const dif::ProbeDescription& pattern, const Visitor& visit) {
  for_each_row(pattern, [&](std::uint32_t index) {
    if (examine(rows_[index])) visit(probe(index));
  });
  return {};
}

Result<void> StableProvider::refusals(const dif::ProbeDescription& pattern,
                                      const RefusalVisitor& visit) {
  for_each_row(pattern, [&](std::uint32_t index) {
    const auto fine = examine(rows_[index]);
    if (!fine) visit({probe(index).name, fine.error().message});
  });
  return {};
}

void StableProvider::gaps(const dif::ProbeDescription& pattern, const RefusalVisitor& visit) {
  std::vector<std::pair<std::uint32_t, std::string>> missing;
  std::unordered_set<std::string_view> published;
  for_each_row(pattern, [&](std::uint32_t index) {
    const auto fine = examine(rows_[index]);
    if (fine) published.insert(rows_[index].probe->name);
    // A kernel that does not count something has nothing of it. A function may have another name.
    const bool lacks = !fine && fine.error().code != ErrorCode::NotFound;
    if (lacks) missing.emplace_back(index, fine.error().message);
  });
  for (auto& [index, why] : missing) {
    if (published.contains(rows_[index].probe->name)) visit({probe(index).name, std::move(why)});
  }
}

Result<std::optional<Probe>> StableProvider::by_id(dif::ProbeId id) {
  const auto index = index_of(id);
  if (!index || !places_.is(rows_[*index].probe->kernels) || !examine(rows_[*index])) {
    return std::optional<Probe>();
  }
  return std::optional(probe(*index));
}

ProbeArguments StableProvider::arguments(const Probe& probe) {
  const auto index = index_of(probe.id);
  if (!index) return {};
  Row& row = rows_[*index];
  const auto place = place_of(row);
  return place ? arguments_of(*row.probe, **place) : ProbeArguments();
}

ProbeArguments arguments_of(const dif::ProbeDefinition& probe, const StablePlace& place) {
  ProbeArguments arguments;
  arguments.known = true;
  arguments.types = place.types();
  for (const auto& native : probe.arguments) arguments.names.push_back(native.name);
  for (const auto& shown : probe.translated) {
    arguments.translated.push_back({shown.type, shown.native});
  }
  return arguments;
}

Result<void> StableProvider::enable(const Probe& probe) {
  const auto index = index_of(probe.id);
  if (!index) return no_such_probe();
  Row& row = rows_[*index];
  if (row.enabled) return {};
  TRY(examine(row));
  StablePlace* const place = row.place.get();
  shared_->evaluator.make_room();
  Sites sites = std::move(*row.sites);
  row.sites.reset();  // taken, as arrivals remember: each enabling has its own
  const auto bind = [&](BoundSite& bound, const TrapFilter* arrival) {
    bound.binding.probe = probe.id;
    bound.binding.plan = &place->plan();
    bound.binding.filter = arrival;
    return points_.bind(bound.site, bound.binding);
  };
  for (BoundSite& bound : sites.starts) {
    TRY(bind(bound, place->at_start(bound.binding.filter, shared_->displaced)));
  }
  for (BoundSite& bound : sites.ends) TRY(bind(bound, place->at_end(bound.binding.filter)));
  row.enabled = true;
  return {};
}

bool StableProvider::is_enabled(dif::ProbeId id) const {
  const auto index = index_of(id);
  return index && rows_[*index].enabled;
}

void StableProvider::note_disabled(dif::ProbeId id) {
  if (const auto index = index_of(id)) rows_[*index].enabled = false;
}

std::shared_ptr<const std::atomic<std::uint64_t>> add_stable_providers(
    Registry& registry, std::shared_ptr<const DefinedProbes> defined, const GuestReader& text,
    const vmm::GuestMemory& memory, guest_linux::Kernel& kernel, UserPointTable& users,
    ProbePoints& points) {
  const auto shared =
      std::make_shared<StableProvider::Shared>(std::move(defined), text, kernel, points);
  const auto& all = shared->defined->probes;
  const auto is_of_processes = [&all](std::string_view provider) {
    return std::ranges::any_of(all, [provider](const dif::ProbeDefinition& probe) {
      return probe.provider == provider && probe.is_of_processes();
    });
  };
  std::unordered_set<std::string_view> added;
  for (const dif::ProbeDefinition& probe : all) {
    const std::string_view name = probe.provider;
    if (!added.insert(name).second) continue;
    if (is_of_processes(name)) {
      registry.add(
          std::make_unique<StableProcessProvider>(name, shared, memory, kernel, users, points));
    } else {
      registry.add(std::make_unique<StableProvider>(name, shared, kernel, points));
    }
  }
  return {shared, &shared->displaced};
}

}  // namespace ringside::providers
