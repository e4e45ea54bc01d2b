// Assignments to aggregations, @name[keys] = function(arguments), and the table of the aggregations
// that they make.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dif/d/actions/action_tools.h"
#include "dif/program/program.h"

namespace ringside::d {

/// The aggregations of a program by name. They lie in Program::aggregations.
class AggregationTable {
 public:
  explicit AggregationTable(dif::Program& program) : program_(program) {}

  /// Its index; empty when nothing has been assigned to @name yet.
  std::optional<std::uint32_t> find_aggregation(const std::string& name) const;
  /// "; did you mean @NAME?"; empty where none is near.
  std::string suggest_similar(std::string_view name) const;
  const dif::Aggregation& at(std::uint32_t index) const { return program_.aggregations[index]; }
  /// Adds one that is not there. `line`: of the assignment that makes it.
  std::uint32_t add_aggregation(dif::Aggregation aggregation, int line);
  /// A later use has other stacks as keys.
  void set_keys(std::uint32_t index, std::vector<dif::ValueType> keys) {
    program_.aggregations[index].keys = std::move(keys);
  }
  /// The line of the assignment that made it.
  int line(const std::string& name) const { return known_.at(name).line; }

 private:
  struct Known {
    std::uint32_t index = 0;
    int line = 0;
  };
  dif::Program& program_;
  std::unordered_map<std::string, Known> known_;
};

/// The parameters of lquantize() and llquantize(): which buckets there are.
class QuantizeParameters {
 public:
  QuantizeParameters(const ActionTools& tools, const AggregationTable& table)
      : tools_(tools), table_(table) {}

  /// Packed as Aggregation::parameters has them (dif/program/aggregate_function.h).
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
