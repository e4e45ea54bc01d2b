// The parameters of lquantize() and llquantize(): which buckets there are.
#pragma once

#include "dif/d/actions/action_tools.h"
#include "dif/d/actions/aggregation_table.h"

namespace ringside::d {

class QuantizeParameters {
 public:
  QuantizeParameters(const ActionTools& tools, const AggregationTable& table)
      : tools_(tools), table_(table) {}

  /// Packed as Aggregation::parameters has them (aggregate_function.h).
  Checked<std::uint64_t> lquantize(const Expr& call);
  Checked<std::uint64_t> llquantize(const Expr& call);
  /// Complains unless the call has the parameters of the aggregation's earlier uses.
  Checked<void> check_same(const Expr& call, const dif::Aggregation& known,
                           std::uint64_t parameters);

 private:
  Checked<std::int64_t> parameter(const Expr& call, std::size_t index, std::string_view type_tag,
                                  std::string_view what);
  Checked<void> check_log_linear(const Expr& call, std::int64_t factor, std::int64_t low,
                                 std::int64_t high, std::int64_t steps);
  Checked<void> check_magnitudes(const Expr& call, std::int64_t factor, std::int64_t high,
                                 std::int64_t steps);

  ActionTools tools_;
  const AggregationTable& table_;
};

}  // namespace ringside::d
