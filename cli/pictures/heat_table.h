// Distributions (quantize(), lquantize(), llquantize()) over time, collected from structured
// records (docs/output-schema.json) for heat maps: each time an aggregation is printed it makes a
// column, with what came since the print before.
// Does not: trust records. A saved one may come from anybody.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/pictures/stack_counts.h"
#include "vmm/base/result.h"

namespace ringside::cli {

/// One aggregation of one machine.
struct HeatAggregation {
  bool is_quantize = false;          // a bucket below 0 is then named by its largest value
  std::vector<std::uint64_t> times;  // of its prints, in ns, ascending: column i ends at times[i]
  /// By a bucket's value, that of the next bucket; of an open end its text, "< 0".
  std::map<std::int64_t, std::int64_t> ends;
  std::map<std::int64_t, std::string> open;
  struct Cell {
    std::uint32_t column = 0;
    std::int64_t bucket = 0;  // its value
    std::uint64_t count = 0;
  };
  struct Series {
    std::vector<Cell> cells;  // by column
    std::uint64_t total = 0;
  };
  std::map<std::string, Series> series;  // by the key's text; empty text: it has no key
};

class HeatTable {
 public:
  static constexpr std::size_t kMostCells = 4'000'000;

  /// Takes in one record. Invalid: not in the schema's shape. Limit: more than kMostCells.
  Result<void> add(const Tree& record);

  /// By machine and name, with '@'.
  using Aggregations = std::map<std::pair<std::string, std::string>, HeatAggregation>;
  const Aggregations& aggregations() const { return aggregations_; }
  bool several_machines() const { return machines_.size() > 1; }
  /// Aggregations that hold something else than distributions: "@a".
  const std::set<std::string>& others() const { return others_; }

 private:
  using Buckets = std::map<std::int64_t, std::int64_t>;  // counts by the bucket's value
  using Shown = std::map<std::string, Buckets>;          // by the key's text
  using Id = std::pair<std::string, std::string>;

  Result<void> take(const Id& id, std::uint64_t time, const Tree& data);
  static Result<Buckets> take_buckets(HeatAggregation& aggregation, const Tree& list);
  Result<void> append_column(HeatAggregation& aggregation, std::uint64_t time, const Shown& last,
                             const Shown& now);

  Aggregations aggregations_;
  std::map<Id, Shown> shown_;  // of the last print, since the last clear()
  std::set<std::string> machines_, others_;
  std::size_t cells_ = 0;
};

}  // namespace ringside::cli
