// In this file, top to bottom: names, what a description asks for, where a probe stands.
#include "providers/stable/stable_process_provider.h"

#include <fmt/format.h>

#include <algorithm>

namespace ringside::providers {
namespace {

using dif::ProbeDefinition, dif::ProbePlace;
using guest_linux::FileFunction;

/// The place in a process that names the probe's module and function.
const ProbePlace& process_place(const ProbeDefinition& probe) {
  return probe.place.is_of_processes() || !probe.beginning ? probe.place : probe.beginning->place;
}

}  // namespace

StableProcessProvider::StableProcessProvider(std::string_view provider,
                                             std::shared_ptr<StableProvider::Shared> shared,
                                             const vmm::GuestMemory& memory,
                                             guest_linux::Kernel& kernel, UserPointTable& table,
                                             ProbePoints& points)
    : ProcessProvider(provider, kStableAttributes, memory, kernel, table, points),
      kernel_(kernel),
      shared_(std::move(shared)) {
  for (const ProbeDefinition& probe : shared_->defined->probes) {
    if (probe.provider == provider) definitions_.push_back(&probe);
  }
}

/// 0: all.
std::optional<std::int32_t> StableProcessProvider::process_in(std::string_view provider) const {
  if (!provider.starts_with(name())) return std::nullopt;
  const std::string_view rest = provider.substr(name().size());
  return rest.empty() || rest == "*" ? 0 : number_of_process(rest);
}

bool StableProcessProvider::has_name(std::string_view provider) const {
  return process_in(provider).has_value();
}

Result<void> StableProcessProvider::look(const dif::ProbeDescription& names, const Trouble& trouble,
                                         std::set<std::uint32_t>* published, const Module* only) {
  const auto process = process_in(names.provider);
  if (!process) return {};
  const auto modules = modules_of(*process, only);
  if (!modules) {
    trouble(names, fmt::format("the guest has no process {} with memory of its own", *process));
    return {};
  }
  const Pattern pattern{names, *process, trouble, published};
  for (std::size_t n = 0; n < definitions_.size(); ++n) {
    const ProbeDefinition& probe = *definitions_[n];
    if (!dif::field_matches(names.name, probe.name) || !shared_->places.is(probe.kernels)) continue;
    TRY(look_for(pattern, n, *modules));
  }
  return {};
}

Result<void> StableProcessProvider::look_for(const Pattern& pattern, std::size_t definition,
                                             const std::vector<Module>& modules) {
  const ProbeDefinition& probe = *definitions_[definition];
  const ProbePlace& place = process_place(probe);
  const dif::ProbeDescription name{pattern.names.provider, place.module, place.name, probe.name};
  if (place.kind == ProbePlace::Kind::Nowhere) {
    pattern.trouble(name, place.name);
    return {};
  }
  if (!dif::field_matches(pattern.names.function, place.name)) return {};
  const auto has_file = [&place](const Module& module) {
    return dif::field_matches(place.module, module.name);
  };
  // A static program has the functions itself.
  const bool is_static = std::ranges::none_of(modules, has_file);
  bool any = false;
  for (const Module& module : modules) {
    if (!(has_file(module) || (is_static && module.is_program)) || !pattern.wants(module)) continue;
    auto entry = TRY(entry_of(pattern, definition, module));
    if (!entry) continue;
    any = true;
    if (entry->places.empty()) continue;
    TRY(publish(pattern, std::move(*entry)));
  }
  if (any) return {};
  pattern.trouble(name,
                  pattern.process == 0
                      ? fmt::format("no process of the guest has a file {} with a function {} "
                                    "mapped",
                                    place.module, place.name)
                      : fmt::format("neither a file {} of the process nor its program has a "
                                    "function {}",
                                    place.module, place.name));
  return {};
}

Result<StableProcessProvider::Row*> StableProcessProvider::row_of(std::size_t definition,
                                                                  std::int32_t process) {
  const auto known = rows_.find({definition, process});
  if (known != rows_.end()) return &known->second;
  const ProbeDefinition& probe = *definitions_[definition];
  Row row;
  row.place = TRY(
      StablePlace::make(probe, *shared_->defined, kernel_, shared_->places, shared_->evaluator));
  if (probe.counts_last_beginning()) {
    auto& starts = starts_[{probe.name, process}];
    if (starts == nullptr) starts = std::make_shared<StartTable>(shared_->displaced);
    const auto same = std::ranges::find_if(definitions_, [&probe](const ProbeDefinition* one) {
      return one->name == probe.name && one->beginning &&
             one->beginning->place == probe.beginning->place;
    });
    row.place->share_starts(starts, *same);
  }
  if (probe.beginning) row.at_start = row.place->at_start(nullptr, shared_->displaced);
  row.at_end = row.place->at_end(nullptr);
  return &rows_.emplace(std::pair(definition, process), std::move(row)).first->second;
}

/// Empty where the file does not have the function; without places where it cannot stand there.
Result<std::optional<ProcessProvider::Entry>> StableProcessProvider::entry_of(
    const Pattern& pattern, std::size_t definition, const Module& module) {
  const ProbeDefinition& probe = *definitions_[definition];
  const std::string& function = process_place(probe).name;
  const auto* const functions = table().functions_of(module.inode);
  const bool has_function =
      functions != nullptr &&
      std::ranges::find(functions->all(), function, &FileFunction::name) != functions->all().end();
  if (!has_function) return std::nullopt;
  Entry entry{.name = {pattern.names.provider, module.name, function, probe.name},
              .process = pattern.process,
              .definition = definition};
  if (const auto placed = put(entry, definition, module); !placed) {
    pattern.trouble(entry.name, placed.error().message);
    entry.places.clear();
  }
  return entry;
}

/// Finds where it stands. Unsupported, with the reason: it cannot.
Result<void> StableProcessProvider::put(Entry& entry, std::size_t definition,
                                        const Module& module) {
  const ProbeDefinition& probe = *definitions_[definition];
  const Row& row = *TRY(row_of(definition, entry.process));
  const ArgumentPlan* const plan = &row.place->plan();
  if (probe.beginning) {
    const ProbePlace& place = probe.beginning->place;
    TRY(add_places(entry, module, place, {.at = {}, .plan = plan, .filter = row.at_start},
                   OnTailCall::Leave));
  }
  // The entry tells whose a return of a function is that others call, too.
  TRY(add_places(entry, module, probe.place, {.at = {}, .plan = plan, .filter = row.at_end},
                 probe.beginning ? OnTailCall::Follow : OnTailCall::Leave));
  if (!probe.place.is_of_processes()) {
    TRY(kernel_sites(definition, row));
    entry.kernel_sites = [this, definition, &row] { return kernel_sites(definition, row); };
  }
  entry.arguments = arguments_of(probe, *row.place);
  return {};
}

/// Unsupported, with the reason: the probe cannot stand there.
Result<void> StableProcessProvider::add_places(Entry& entry, const Module& module,
                                               const ProbePlace& place, const Place& as,
                                               OnTailCall on_tail_call) {
  if (!place.is_of_processes()) return {};
  const auto add = [&](Place one) {
    one.plan = as.plan, one.filter = as.filter;
    if (std::ranges::find(entry.places, one.at, &Place::at) == entry.places.end()) {
      entry.places.push_back(one);
    }
  };
  const auto& functions = *table().functions_of(module.inode);
  const auto read = table().reader_of(module.inode);
  // A library may have several versions of a function, and a version several symbols.
  for (const FileFunction& function : functions.all()) {
    if (function.name != place.name) continue;
    if (place.kind == ProbePlace::Kind::UserEntry) {
      add({.at = {module.inode, table().entry_of(module.inode, function)}});
      continue;
    }
    const auto ways =
        TRY(user_returns(read, functions, table().pieces_of(module.inode), function, on_tail_call));
    for (const UserReturn& way : ways) {
      if (place.needs_result && !way.has_value) {
        return fail(ErrorCode::Unsupported,
                    fmt::format("{} leaves by a jump, where its result is not known", place.name));
      }
      add({.at = {module.inode, way.offset},
           .in_function = static_cast<std::uint32_t>(way.offset - function.offset),
           .condition = way.condition});
    }
  }
  return {};
}

Result<std::vector<BoundSite>> StableProcessProvider::kernel_sites(std::size_t definition,
                                                                   const Row& row) {
  auto sites = TRY(shared_->places.sites(definitions_[definition]->place));
  for (BoundSite& bound : sites) {
    bound.binding.plan = &row.place->plan();
    bound.binding.filter = row.at_end;
  }
  return sites;
}

Result<void> StableProcessProvider::enable(const Probe& probe) {
  shared_->evaluator.make_room();
  return ProcessProvider::enable(probe);
}

}  // namespace ringside::providers
