#include "dif/d/actions/aggregation_table.h"

#include <functional>

#include "vmm/base/similar_name.h"

namespace ringside::d {

std::optional<std::uint32_t> AggregationTable::find(const std::string& name) const {
  const auto at = known_.find(name);
  return at == known_.end() ? std::nullopt : std::optional(at->second.index);
}

std::string AggregationTable::suggest(std::string_view name) const {
  const std::string nearest =
      similar_name(name, program_.aggregations, std::mem_fn(&dif::Aggregation::name));
  return did_you_mean(nearest, "@");
}

std::uint32_t AggregationTable::add(dif::Aggregation aggregation, int line) {
  const auto index = static_cast<std::uint32_t>(program_.aggregations.size());
  known_.emplace(aggregation.name, Known{index, line});
  program_.aggregations.push_back(std::move(aggregation));
  return index;
}

}  // namespace ringside::d
