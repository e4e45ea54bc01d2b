// In this file, top to bottom: plans by types, the provider.
#include "providers/functions/entry_return_provider.h"

#include <algorithm>
#include <utility>

namespace ringside::providers {

TypedPlans::Widths TypedPlans::width_of(TypeId type) const {
  const Type& plain = types_[types_.resolve(type)];
  const bool is_number = plain.kind == TypeKind::Integer || plain.kind == TypeKind::Enum;
  const bool is_part = plain.size == 1 || plain.size == 2 || plain.size == 4;
  if (!is_number || !is_part) return 0;
  return plain.size | (plain.is_signed ? kSigned : 0);
}

void TypedPlans::know(dif::ProbeId probe, const ProbeArguments& arguments) {
  if (!arguments.known) return;
  Widths all = 0;
  const std::size_t count = std::min(arguments.types.size(), ArgumentPlan().arguments.size());
  for (std::size_t n = 0; n < count; ++n) all |= width_of(arguments.types[n]) << (n * kBits);
  if (all != 0) widths_[probe.value] = all;
}

const ArgumentPlan* TypedPlans::plan(dif::ProbeId probe, const ArgumentPlan& base) {
  const auto known = widths_.find(probe.value);
  if (known == widths_.end()) return &base;
  const auto [at, is_new] = plans_.try_emplace({&base, known->second}, base);
  ArgumentPlan& plan = at->second;
  if (!is_new) return &plan;
  Widths rest = known->second;
  for (ArgumentSource& source : plan.arguments) {
    const auto size = static_cast<std::uint8_t>(rest & kSize);
    if (size != 0) source = source.narrowed(size, (rest & kSigned) != 0);
    rest >>= kBits;
  }
  return &plan;
}

std::uint32_t EntryReturnProvider::index_at(FunctionEnd place) {
  return static_cast<std::uint32_t>(place.function * 2) + (place.end == End::Return ? 1 : 0);
}

Probe EntryReturnProvider::probe(FunctionEnd place) const {
  const bool leaves = place.end == End::Return;
  dif::ProbeDescription name = function_name(place.function);
  name.provider = this->name();
  name.name = leaves ? "return" : "entry";
  return {id_at(index_at(place)), std::move(name)};
}

std::optional<EntryReturnProvider::FunctionEnd> EntryReturnProvider::place_of(
    dif::ProbeId id) const {
  const auto index = index_of(id);
  if (!index) return std::nullopt;
  return FunctionEnd{*index / 2, *index % 2 == 0 ? End::Entry : End::Return};
}

/// Those places of `functions` that the pattern's name wants.
void EntryReturnProvider::for_each_end(const dif::ProbeDescription& pattern,
                                       const std::function<void(const VisitFunction&)>& functions,
                                       const std::function<void(FunctionEnd)>& visit) {
  const bool entry = dif::field_matches(pattern.name, "entry");
  const bool leave = dif::field_matches(pattern.name, "return");
  if (!entry && !leave) return;
  functions([&](std::size_t function) {
    if (entry) visit({function, End::Entry});
    if (leave) visit({function, End::Return});
  });
}

void EntryReturnProvider::for_each_place(const dif::ProbeDescription& pattern,
                                         const std::function<void(FunctionEnd)>& visit) const {
  for_each_end(
      pattern, [&](const VisitFunction& function) { for_each_function(pattern, function); }, visit);
}

/// Examines the place unless that is done; the error says why no probe stands there.
Result<void> EntryReturnProvider::examine(FunctionEnd place) {
  if (generation_ != points_.generation()) examined_.clear();
  generation_ = points_.generation();
  const std::uint32_t index = index_at(place);
  if (examined_.contains(index)) return {};
  examined_.emplace(index, TRY(find_sites(place)));
  return {};
}

Result<std::vector<BoundSite>> EntryReturnProvider::take_sites(FunctionEnd place) {
  TRY(examine(place));
  return std::move(examined_.extract(index_at(place)).mapped());
}

Result<void> EntryReturnProvider::provide(const dif::ProbeDescription& pattern,
                                          const Visitor& visit) {
  for_each_place(pattern, [&](FunctionEnd place) {
    if (examine(place)) visit(probe(place));
  });
  return {};
}

Result<void> EntryReturnProvider::provide_in(std::uint16_t module,
                                             const dif::ProbeDescription& pattern,
                                             const Visitor& visit) {
  const auto functions = [&](const VisitFunction& function) {
    for_each_late_function(module, pattern, function);
  };
  for_each_end(pattern, functions, [&](FunctionEnd place) {
    if (examine(place)) visit(probe(place));
  });
  return {};
}

void EntryReturnProvider::forget_functions(std::size_t first, std::size_t count) {
  std::vector<dif::ProbeId> enabled;
  const std::uint32_t end = index_at({first + count, End::Entry});
  for (std::uint32_t index = index_at({first, End::Entry}); index < end; ++index) {
    examined_.erase(index);
    const dif::ProbeId id = id_at(index);
    if (enabled_.erase(id.value) != 0) enabled.push_back(id);
  }
  points_.forget(enabled);
}

Result<void> EntryReturnProvider::refusals(const dif::ProbeDescription& pattern,
                                           const RefusalVisitor& visit) {
  for_each_place(pattern, [&](FunctionEnd place) {
    const Result<void> fine = examine(place);
    if (!fine) visit({probe(place).name, fine.error().message});
  });
  return {};
}

Result<std::optional<Probe>> EntryReturnProvider::by_id(dif::ProbeId id) {
  const auto place = place_of(id);
  if (!place || !examine(*place)) return std::optional<Probe>();
  return std::optional(probe(*place));
}

Result<void> EntryReturnProvider::enable(const Probe& probe) {
  const auto place = place_of(probe.id);
  if (!place) return no_such_probe();
  if (enabled_.contains(probe.id.value)) return {};
  std::vector<BoundSite> sites = TRY(take_sites(*place));
  complete(*place, sites);
  plans_.know(probe.id, arguments(probe));
  for (BoundSite& bound : sites) {
    bound.binding.probe = probe.id;
    bound.binding.plan = plans_.plan(probe.id, *bound.binding.plan);
    TRY(points_.bind(bound.site, bound.binding));
  }
  enabled_.insert(probe.id.value);
  return {};
}

}  // namespace ringside::providers
