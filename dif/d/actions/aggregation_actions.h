// Actions on an aggregation that has been made: printa(), percentile(), clear(), trunc(),
// normalize().
#pragma once

#include <string>
#include <vector>

#include "dif/d/actions/action_tools.h"
#include "dif/d/actions/aggregating.h"
#include "dif/program/format.h"

namespace ringside::d {

/// The functions that actions.def names as aggregations.NAME.
class AggregationActions {
 public:
  AggregationActions(const ActionTools& tools, const AggregationTable& table)
      : tools_(tools), table_(table) {}

  Checked<dif::Action> of_one(Expr& call, dif::ActionKind kind);
  Checked<dif::Action> trunc(Expr& call, dif::ActionKind kind);
  Checked<dif::Action> normalize(Expr& call, dif::ActionKind kind);
  Checked<dif::Action> printa(Expr& call, dif::ActionKind kind);
  Checked<dif::Action> percentile(Expr& call, dif::ActionKind kind);

 private:
  Checked<std::uint32_t> known_aggregation(const Expr& call, std::size_t position,
                                           std::string_view argument_tag,
                                           std::string_view unknown_tag);
  Checked<dif::Action> on_aggregation(Expr& call, dif::ActionKind kind, std::size_t most);
  Checked<void> same_keys(const Expr& e, std::uint32_t first, std::uint32_t other);
  Checked<void> star_key(const Expr& call, const std::vector<dif::ValueType>& keys,
                         std::size_t index, std::size_t number);
  Checked<std::string> percentile_text(Expr& argument);
  Checked<void> check_printa(const Expr& call, const dif::Action& action);

  ActionTools tools_;
  const AggregationTable& table_;
};

}  // namespace ringside::d
