// The aggregations of a program by name. They lie in Program::aggregations.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dif/program/program.h"

namespace ringside::d {

class AggregationTable {
 public:
  explicit AggregationTable(dif::Program& program) : program_(program) {}

  /// Its index; empty when nothing has been assigned to @name yet.
  std::optional<std::uint32_t> find(const std::string& name) const;
  /// "; did you mean @NAME?"; empty where none is near.
  std::string suggest(std::string_view name) const;
  const dif::Aggregation& at(std::uint32_t index) const { return program_.aggregations[index]; }
  /// Adds one that is not there. `line`: of the assignment that makes it.
  std::uint32_t add(dif::Aggregation aggregation, int line);
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

}  // namespace ringside::d
