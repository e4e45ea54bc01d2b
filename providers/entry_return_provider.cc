#include "providers/entry_return_provider.h"

#include <utility>

namespace ringside::providers {

Probe EntryReturnProvider::probe(Place place) const {
  const bool leaves = place.end == End::Return;
  dif::ProbeDescription name = function_name(place.function);
  name.provider = this->name();
  name.name = leaves ? "return" : "entry";
  return {id_at(static_cast<std::uint32_t>(place.function * 2) + (leaves ? 1 : 0)),
          std::move(name)};
}

std::optional<EntryReturnProvider::Place> EntryReturnProvider::place_of(dif::ProbeId id) const {
  const auto index = index_of(id);
  if (!index) return std::nullopt;
  return Place{*index / 2, *index % 2 == 0 ? End::Entry : End::Return};
}

void EntryReturnProvider::for_each_place(const dif::ProbeDescription& pattern,
                                         const std::function<void(Place)>& visit) const {
  const bool entry = dif::field_matches(pattern.name, "entry");
  const bool leave = dif::field_matches(pattern.name, "return");
  if (!entry && !leave) return;
  for_each_function(pattern, [&](std::size_t function) {
    if (entry) visit({function, End::Entry});
    if (leave) visit({function, End::Return});
  });
}

Result<void> EntryReturnProvider::provide(const dif::ProbeDescription& pattern,
                                          const Visitor& visit) {
  for_each_place(pattern, [&](Place place) {
    if (check(place)) visit(probe(place));
  });
  return {};
}

Result<void> EntryReturnProvider::refusals(const dif::ProbeDescription& pattern,
                                           const RefusalVisitor& visit) {
  for_each_place(pattern, [&](Place place) {
    const Result<void> fine = check(place);
    if (!fine) visit({probe(place).name, fine.error().message});
  });
  return {};
}

Result<std::optional<Probe>> EntryReturnProvider::by_id(dif::ProbeId id) {
  const auto place = place_of(id);
  if (!place || !check(*place)) return std::optional<Probe>();
  return std::optional(probe(*place));
}

}  // namespace ringside::providers
