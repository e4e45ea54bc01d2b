// The output of one vCPU's firings. Each vCPU has two of these: one that its firings fill, and one
// that the consumer empties. Record buffers of policy Switch are exchanged as well; those of ring
// and fill stay with the firings until tracing has ended.
// Fire context: the members that clause_runner.cc uses yes; construction and take() no.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "dif/engine/aggregate.h"
#include "dif/engine/engine.h"
#include "dif/engine/record_buffer.h"

namespace ringside::dif {

class VcpuOutput {
 public:
  /// `records` must outlive this.
  VcpuOutput(const EngineOptions& options, std::size_t clauses, RecordBuffer& records);

  RecordBuffer& records() { return records_; }
  AggregationBuffer& aggregations() { return aggregations_; }
  void drop(DropKind kind, std::uint64_t count = 1) {
    drops_[static_cast<std::size_t>(kind)] += count;
  }
  /// This clause lost what it was making.
  void drop_of(std::uint32_t clause, DropKind kind) {
    drop(kind);
    ++clause_drops_[clause][static_cast<std::size_t>(kind)];
  }
  /// A record found no room. Fill drops nothing but END's: it ends tracing.
  void drop_record(std::uint32_t clause) {
    if (policy_ != BufferPolicy::Fill || room_ == Room::Final) {
      drop_of(clause, DropKind::Principal);
    }
  }
  void add_fault(const FaultReport& report);

  /// Which room firings may use: Final while END fires.
  Room room() const { return room_; }
  void set_room(Room room) { room_ = room; }

  /// Moves everything but records out.
  void take(std::uint32_t vcpu, TraceData& trace_data);

 private:
  BufferPolicy policy_;
  Room room_ = Room::Ordinary;
  RecordBuffer& records_;
  AggregationBuffer aggregations_;
  std::vector<FaultReport> faults_;  // capacity is set once: adding does not allocate
  std::uint64_t fault_reports_lost_ = 0;
  using Drops = std::array<std::uint64_t, kDropKinds>;
  Drops drops_{};
  std::vector<Drops> clause_drops_;
};

/// Moves all vCPUs' records out; `buffers` by vCPU. `temporal`: merged by timestamp, else one vCPU
/// after the other.
void take_records(const std::vector<RecordBuffer*>& buffers, bool temporal, TraceData& trace_data);
/// Faults of vCPUs that were taken one after the other, in the order of their firing.
void order_faults(TraceData& trace_data);

}  // namespace ringside::dif
