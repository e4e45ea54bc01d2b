// Assignments to aggregations: @name[keys] = function(arguments).
#pragma once

#include <vector>

#include "dif/d/actions/action_tools.h"
#include "dif/d/actions/aggregation_table.h"
#include "dif/d/actions/code_values.h"
#include "dif/d/actions/quantize_parameters.h"

namespace ringside::d {

class Aggregating {
 public:
  /// The table takes in what the assignments make.
  Aggregating(const ActionTools& tools, AggregationTable& table)
      : tools_(tools), table_(table), code_(tools), quantize_(tools, table) {}

  Checked<dif::Action> build(Expr& assignment);

 private:
  Checked<dif::AggregatingInfo> function_of(Expr& e);
  Checked<void> aggregate_keys(dif::Action& action, const Expr& target,
                               std::vector<dif::ValueType>& keys);
  Checked<dif::Difo> key(Expr& e, const dif::ValueType* expected);
  Checked<void> aggregate_values(dif::Action& action, const Expr& call, std::size_t increment);
  Checked<void> same_function(const Expr& e, const dif::Aggregation& known,
                              dif::AggregateFunction function);

  ActionTools tools_;
  AggregationTable& table_;
  CodeValues code_;
  QuantizeParameters quantize_;
};

}  // namespace ringside::d
