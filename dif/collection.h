// Everything that firings produce, once: the engine has two, one that firings fill and one that
// the consumer empties.
// Fire context: the members that clause_runner.cc uses yes; harvest() no.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "dif/aggregate.h"
#include "dif/engine.h"
#include "dif/record_buffer.h"

namespace ringside::dif {

class Collection {
 public:
  Collection(const EngineOptions& options, unsigned vcpus);

  RecordBuffer& records(std::uint32_t vcpu) { return records_[vcpu]; }
  AggregationBuffer& aggregations() { return aggregations_; }
  void drop(std::uint32_t vcpu, DropKind kind, std::uint64_t count = 1) {
    drops_[vcpu][static_cast<std::size_t>(kind)] += count;
  }
  void add_fault(const FaultReport& report);

  /// Moves everything out and leaves the collection empty.
  Harvest harvest();

 private:
  using Drops = std::vector<std::array<std::uint64_t, kDropKinds>>;

  std::vector<RecordBuffer> records_;
  AggregationBuffer aggregations_;
  std::vector<FaultReport> faults_;  // capacity is set once: adding does not allocate
  std::uint64_t fault_reports_lost_ = 0;
  Drops drops_;
};

}  // namespace ringside::dif
